"""Extracts tool calls and reasoning (between tags such as `<think>`) from the text of a reply.

It works on stream events; a whole reply is converted to events first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id, hash_tool_id
from segue.canonical.request import Reply, Tool
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.json_values import object_or_none
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    WholeBlock,
    arguments_text,
    reply_events,
)
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import BrokenCall, FoundCall, Marker, Segment, Thought
from segue.wire.text.registry import select_parse_format
from segue.wire.text.scan import CallScanner, scan_text
from segue.wire.text.text_format import TextFormat
from segue.wire.text.tokens import EosFilter, partial_token_length

# Most models; MiniMax M3; Seed-OSS; Kimi K3; Magistral; Gemma 4.
_THINK_TAGS = {
    "<think>": "</think>",
    "<mm:think>": "</mm:think>",
    "<seed:think>": "</seed:think>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "[THINK]": "[/THINK]",
    "<|channel>thought\n": "<channel|>",
    "<|channel>thought": "<channel|>",
}
# A prompt may begin the reasoning, or end it: then the reply begins with the closing tag.
_TAGS = (*_THINK_TAGS, *_THINK_TAGS.values())
_Kind: TypeAlias = type[Text] | type[Thinking]


class ThinkTagSplitter:
    """Splits text into reasoning and text. Only a tag at the start of the reply begins reasoning."""

    def __init__(self, *, enabled: bool) -> None:
        self._state: Literal["before", "inside", "after_tag", "after"] = "before" if enabled else "after"
        self._held: str = ""
        self._space = TextBuffer()
        self._close = ""

    @property
    def has_tag(self) -> bool:
        """Whether the reply began with a tag, even if no reasoning followed."""
        return bool(self._close)

    @property
    def is_done(self) -> bool:
        """Whether no reasoning can follow."""
        return self._state == "after"

    @property
    def is_open(self) -> bool:
        """Whether the tag was not closed."""
        return self._state == "inside"

    def feed(self, text: str, *, ended: bool = False) -> list[tuple[_Kind, str]]:
        if self._state == "after":
            return _nonempty(Text, text)
        text, self._held = self._held + text, ""
        match self._state:
            case "before":
                return self._feed_before(text, ended=ended)
            case "inside":
                return self._feed_inside(text, ended=ended)
            case "after_tag":
                return self._feed_after_tag(text)

    def _feed_before(self, text: str, *, ended: bool) -> list[tuple[_Kind, str]]:
        bare = text.lstrip()
        # White space is kept apart: only a tag is compared again when more text arrives.
        self._space.append(text[: len(text) - len(bare)])
        if not ended and (not bare or any(tag.startswith(bare) and tag != bare for tag in _TAGS)):
            self._held = bare
            return []
        for opening, close in _THINK_TAGS.items():
            if bare.startswith(opening):
                self._state, self._close = "inside", close
                return self._feed_inside(bare[len(opening) :], ended=ended)
            if bare.startswith(close):
                self._state, self._close = "after_tag", close
                return self._feed_after_tag(bare[len(close) :])
        self._state = "after"
        return _nonempty(Text, self._space.text() + bare)

    def _feed_inside(self, text: str, *, ended: bool) -> list[tuple[_Kind, str]]:
        thought, tag, text_after = text.partition(self._close)
        if tag:
            self._state = "after_tag"
            return _nonempty(Thinking, thought) + self._feed_after_tag(text_after)
        held_length = 0 if ended else partial_token_length(text, self._close)
        self._held = text[len(text) - held_length :]
        return _nonempty(Thinking, text[: len(text) - held_length])

    def _feed_after_tag(self, text: str) -> list[tuple[_Kind, str]]:
        """Drop the line breaks after the closing tag."""
        text = text.lstrip("\n")
        if text:
            self._state = "after"
        return _nonempty(Text, text)


def _nonempty(kind: _Kind, text: str) -> list[tuple[_Kind, str]]:
    return [(kind, text)] if text else []


class TextExtractor:
    """Maps stream events to stream events with new block indexes. Without a `text_format` no calls are extracted."""

    def __init__(
        self,
        text_format: TextFormat | None,
        *,
        turn_key: str,
        declared: DeclaredTools | None = None,
        report: Report | None = None,
        think: bool = True,
    ) -> None:
        self._format = text_format
        self._declared = declared or DeclaredTools()
        self._turn_key = turn_key
        self._report = report or Report()
        self._think = ThinkTagSplitter(enabled=think)
        self._scanner: CallScanner | None = None
        self._eos = EosFilter(text_format.eos_tokens if text_format is not None else ())
        self._refusals: set[int] = set()
        self._open_block: tuple[_Kind, int, TextBuffer] | None = None
        self._indexes: dict[int, int] = {}
        self._next_index = 0
        self._model: str | None = None
        self._reasoning = TextBuffer()
        self._tagged = TextBuffer()
        """The part of the reasoning that was in tags."""
        self._has_text = False
        self._pending_space = TextBuffer()
        self._found_markers = False
        """Whether special tokens or a thought channel were removed from the middle of the text."""
        self._indexes_shifted = False
        self._start_pending = False
        self._calls = 0
        self._ids: set[str] = set()
        self.found_calls = 0

    @property
    def has_extracted(self) -> bool:
        """Whether calls, reasoning or special tokens were removed from the text."""
        return bool(self.found_calls) or self._found_markers or self._think.has_tag or self._eos.dropped

    @property
    def is_idle(self) -> bool:
        """Whether all further events would pass unchanged."""
        has_changed = self._think.has_tag or self._indexes_shifted or self._start_pending
        return self._format is None and self._think.is_done and not has_changed

    def feed(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if self.is_idle:
                # Checked for each event: the result must not depend on how a stream is split.
                out.append(event)
            elif isinstance(event, TextDelta) and event.index not in self._refusals:
                self._feed_text(event.text, out)
            elif isinstance(event, BlockStart | BlockEnd) and isinstance(event.block, Text) and not event.block.refusal:
                self._start_pending = isinstance(event, BlockStart)
                if isinstance(event, BlockEnd):
                    self._end_text(out)
                else:
                    self._indexes_shifted = self._indexes_shifted or event.index != self._next_index
            else:
                self._feed_other(event, out)
        return out

    def _feed_other(self, event: Event, out: list[Event]) -> None:
        match event:
            case BlockStart() | WholeBlock():
                self._close_block(out)
                number = self._indexes[event.index] = self._take_index()
                self._indexes_shifted = self._indexes_shifted or number != event.index
                if isinstance(event.block, Text):
                    self._refusals.add(event.index)
                if isinstance(event.block, ToolCall):
                    self._calls += 1
                    self._ids.add(event.block.id)
                out.append(msgspec.structs.replace(event, index=number))
            case TextDelta() | ThinkingDelta() | InputDelta() | BlockEnd():
                if isinstance(event, ThinkingDelta):
                    self._reasoning.append(event.text)
                out.append(msgspec.structs.replace(event, index=self._indexes[event.index]))
            case Finished():
                self._end_text(out)
                self._close_block(out)
                self._extract_from_reasoning(out)
                if event.finish == "stop":
                    self._repeat_open_thought(out)
                if self.found_calls and event.finish == "stop":
                    event = msgspec.structs.replace(event, finish="tool_calls", raw_finish=None)
                out.append(event)
            case _:
                if isinstance(event, ReplyStart):
                    self._model = event.model
                elif isinstance(event, Failed):
                    self._end_text(out)
                out.append(event)

    def _take_index(self) -> int:
        number, self._next_index = self._next_index, self._next_index + 1
        return number

    # ------------------------------------------------------------------------------------------------------------- text

    def _feed_text(self, text: str, out: list[Event], *, ended: bool = False) -> None:
        for kind, piece in self._think.feed(text, ended=ended):
            if kind is Thinking:
                self._indexes_shifted = True
                self._reasoning.append(piece)
                self._tagged.append(piece)
                self._emit_delta(Thinking, piece, out)
            elif self._format is None:
                self._emit_delta(Text, piece, out)
            else:
                self._scanner = self._scanner or CallScanner(self._format, self._declared)
                self._emit_segments(self._scanner.feed(piece), out)

    def _end_text(self, out: list[Event]) -> None:
        self._feed_text("", out, ended=True)
        if self._scanner is not None:
            self._emit_segments(self._scanner.close(), out)
            self._emit_text(self._eos.flush(), out)
            self._scanner = None
        self._close_block(out)

    def _emit_delta(self, kind: _Kind, text: str, out: list[Event]) -> None:
        if self._open_block is not None and self._open_block[0] is not kind:
            self._close_block(out)
        if self._open_block is None:
            self._open_block = (kind, self._take_index(), TextBuffer())
            self._start_pending = False
            out.append(
                BlockStart(self._open_block[1], kind())
                if kind is Thinking
                else BlockStart(self._open_block[1], Text(""))
            )
        _, number, content = self._open_block
        content.append(text)
        self._has_text = self._has_text or (kind is Text and not text.isspace())
        out.append(ThinkingDelta(number, text) if kind is Thinking else TextDelta(number, text))

    def _close_block(self, out: list[Event]) -> None:
        if self._open_block is not None:
            kind, number, content = self._open_block
            self._open_block = None
            out.append(BlockEnd(number, kind(content.text())))

    def _emit_segments(self, segments: Iterable[Segment], out: list[Event]) -> None:
        for segment in segments:
            if isinstance(segment, FoundCall):
                self._emit_text(self._eos.flush_before_call(), out)
                self._pending_space = TextBuffer()
                self._close_block(out)
                self._emit_call(segment, out)
            elif isinstance(segment, BrokenCall):
                if not (segment.report_if_alone and (self._has_text or self._calls)):
                    excerpt = segment.raw_text if len(segment.raw_text) <= 60 else f"{segment.raw_text[:60]}…"
                    self._report.add("text", f"not a valid tool call ({segment.reason}), kept as text: {excerpt}")
                self._emit_text(self._eos.feed(segment.raw_text), out)
            elif isinstance(segment, Thought):
                self._emit_text(self._eos.flush_before_call(), out)
                self._emit_thought(segment.text, out)
            elif isinstance(segment, Marker):
                self._found_markers = True
            else:
                self._emit_text(self._eos.feed(segment), out)

    def _emit_thought(self, text: str, out: list[Event]) -> None:
        self._found_markers = True
        if text:
            self._reasoning.append(text)
            self._emit_delta(Thinking, text, out)
            self._close_block(out)

    def _emit_text(self, text: str, out: list[Event]) -> None:
        """Emit text, without white space that only separates calls."""
        if not text:
            return
        self._pending_space.append(text)
        if not (self.found_calls and self._open_block is None and text.isspace()):
            text, self._pending_space = self._pending_space.text(), TextBuffer()
            self._emit_delta(Text, text, out)

    # ------------------------------------------------------------------------------------------------------------ calls

    def _emit_call(self, found: FoundCall, out: list[Event]) -> None:
        if not self._declared.can_call(found.name):
            self._report.add("name", f"call of an undeclared tool: {found.name}", subject=found.name)
        number = self._take_index()
        call = self._build_call(found)
        self.found_calls += 1
        self._check_arguments(found, call.id)
        begun = msgspec.structs.replace(call, arguments={}, arguments_text=None)
        out += (BlockStart(number, begun), InputDelta(number, arguments_text(call)), BlockEnd(number, call))

    def _check_arguments(self, found: FoundCall, call_id: str) -> None:
        arguments = object_or_none(found.arguments)
        if found.repeated_key is not None:
            self._report_argument(f"duplicate argument {found.repeated_key}: the last value is used", found, call_id)
        if found.arguments_text is not None:
            if found.arguments_text.strip():
                self._report_argument("arguments are not valid JSON, kept as text", found, call_id)
        elif arguments is None:
            self._report_argument("arguments are not a JSON object", found, call_id)
        else:
            for key, types in self._declared.find_type_mismatches(found.name, arguments):
                self._report_argument(f"argument {key} does not have its declared type ({types})", found, call_id)

    def _report_argument(self, message: str, found: FoundCall, call_id: str) -> None:
        self._report.add("argument", message, call_id=call_id, subject=found.name)

    def _build_call(self, found: FoundCall) -> ToolCall:
        provider = self._format.provider if self._format is not None else "text"
        origin = Origin(provider, self._model, found.raw_id, identity="natural" if found.raw_id else "absent")
        index = self._calls
        call_id = canonical_tool_id(
            provider=provider, raw_id=found.raw_id, tool_name=found.name, turn_key=self._turn_key, call_index=index
        )
        while call_id in self._ids:
            index += 1
            call_id = hash_tool_id(provider, found.raw_id, found.name, self._turn_key, index)
        self._ids.add(call_id)
        self._calls += 1
        return ToolCall(found.name, found.arguments, call_id, found.arguments_text, origin=origin)

    def _extract_from_reasoning(self, out: list[Event]) -> None:
        """Extract calls at the end of the reasoning if the reply has neither text nor calls."""
        if self._format is None or self._has_text or self._calls or not self._reasoning:
            return
        segments = scan_text(self._reasoning.text(), self._format, self._declared)
        while segments and isinstance(last := segments[-1], str) and last.isspace():
            segments.pop()
        calls: list[FoundCall] = []
        while segments and (isinstance(last := segments[-1], FoundCall) or (isinstance(last, str) and last.isspace())):
            calls += [last] if isinstance(last, FoundCall) else []
            segments.pop()
        for found in reversed(calls):
            self._report.add("text", f"call of {found.name} extracted from the reasoning: the reply has no text")
            self._emit_call(found, out)

    def _repeat_open_thought(self, out: list[Event]) -> None:
        """Emit reasoning that did not end as text too: after a regular stop it is, or ends with, the answer."""
        text = self._tagged.text().strip("\n")
        if not self._think.is_open or self._has_text or self._calls or not text.strip():
            return
        self._report.add("text", "reasoning without an end repeated as text: the reply has no other", level="note")
        self._emit_delta(Text, text, out)
        self._close_block(out)


def choose_extractor(
    wire: Wire,
    model: str | None,
    tool_format: str,
    *,
    turn_key: str,
    tools: Iterable[Tool] | None = None,
    report: Report | None = None,
    think: bool = True,
) -> TextExtractor:
    """Return the extractor for a model's replies: in the given tool format, or the one that the model leaks."""
    text_format = select_parse_format(tool_format, wire.provider, model)
    declared = None if text_format is None else DeclaredTools(tools)
    return TextExtractor(text_format, turn_key=turn_key, declared=declared, report=report, think=think)


def extract_from_reply(reply: Reply, extractor: TextExtractor) -> Reply:
    """Extract calls and reasoning from the reply; return the same object if there are none."""
    events = extractor.feed(reply_events(reply))
    if not extractor.has_extracted:
        return reply
    blocks: list[Block] = [event.block for event in events if isinstance(event, BlockEnd | WholeBlock)]
    finish = next(event.finish for event in events if isinstance(event, Finished))
    native = None if reply.native is None else msgspec.structs.replace(reply.native, intact=False)
    return msgspec.structs.replace(reply, blocks=tuple(blocks), finish=finish, native=native)

"""Extracts tool calls and reasoning (between tags such as `<think>`) from the text of a reply.

It works on stream events; a whole reply is converted to events first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id
from segue.canonical.request import Finish, Reply
from segue.render.report import Report
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    Whole,
    arguments_text,
    events_of,
)
from segue.wire.fields import object_or_none
from segue.wire.stream_pieces import GrowingText
from segue.wire.text.base import Found, Lost, Piece, TextFormat
from segue.wire.text.ends import EndTokens
from segue.wire.text.scan import CallScanner, pieces_of
from segue.wire.text.typed import Declared

__all__ = ["Hearing", "ThinkTags", "heard_reply"]

# Most models; Magistral; Gemma 4.
_TAGS = {"<think>": "</think>", "[THINK]": "[/THINK]", "<|channel>thought\n": "<channel|>"}
_Kind: TypeAlias = type[Text] | type[Thinking]


class ThinkTags:
    """Splits text into reasoning and text. Only a tag at the start of the reply begins reasoning."""

    def __init__(self, *, listen: bool) -> None:
        self._state: Literal["before", "inside", "after_tag", "after"] = "before" if listen else "after"
        self._held: str = ""
        self._close = ""

    @property
    def heard(self) -> bool:
        """True if the reply began with a tag, even if no reasoning followed."""
        return bool(self._close)

    @property
    def over(self) -> bool:
        """True if no reasoning can follow."""
        return self._state == "after"

    def feed(self, text: str, *, ended: bool = False) -> list[tuple[_Kind, str]]:
        if self._state == "after":
            return _told(Text, text)
        text, self._held = self._held + text, ""
        match self._state:
            case "before":
                return self._before(text, ended=ended)
            case "inside":
                return self._inside(text, ended=ended)
            case "after_tag":
                return self._parting(text)

    def _before(self, text: str, *, ended: bool) -> list[tuple[_Kind, str]]:
        bare = text.lstrip()
        for opening, close in _TAGS.items():
            if bare.startswith(opening):
                self._state, self._close = "inside", close
                return self._inside(bare[len(opening) :], ended=ended)
        if not ended and any(opening.startswith(bare) for opening in _TAGS):
            self._held = text
            return []
        self._state = "after"
        return _told(Text, text)

    def _inside(self, text: str, *, ended: bool) -> list[tuple[_Kind, str]]:
        thought, tag, rest = text.partition(self._close)
        if tag:
            self._state = "after_tag"
            return _told(Thinking, thought) + self._parting(rest)
        kept = 0 if ended else _half_marker(text, self._close)
        self._held = text[len(text) - kept :]
        return _told(Thinking, text[: len(text) - kept])

    def _parting(self, text: str) -> list[tuple[_Kind, str]]:
        """Drop the line breaks after the closing tag."""
        text = text.lstrip("\n")
        if text:
            self._state = "after"
        return _told(Text, text)


def _told(kind: _Kind, text: str) -> list[tuple[_Kind, str]]:
    return [(kind, text)] if text else []


def _half_marker(text: str, close: str) -> int:
    """The length of the longest end of the text that may begin the closing tag."""
    start = text.rfind(close[0], max(0, len(text) - len(close) + 1))
    return len(text) - start if start >= 0 and close.startswith(text[start:]) else 0


class Hearing:
    """Maps stream events to stream events with new block indexes. Without a `text_format` no calls are extracted."""

    def __init__(
        self,
        text_format: TextFormat | None,
        *,
        turn_key: str,
        declared: Declared | None = None,
        report: Report | None = None,
        think: bool = True,
    ) -> None:
        self._form = text_format
        self._declared = declared or Declared()
        self._turn_key = turn_key
        self._report = report or Report()
        self._tags = ThinkTags(listen=think)
        self._scanner: CallScanner | None = None
        self._ends = EndTokens(text_format.ends if text_format is not None else ())
        self._refusals: set[int] = set()
        self._open: tuple[_Kind, int, GrowingText] | None = None
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._model: str | None = None
        self._thoughts = GrowingText()
        self._said = False
        self._space = ""
        self._moved = False
        self._awaited = False
        self._calls = 0
        self._ids: set[str] = set()
        self.found = 0

    @property
    def more_than_words(self) -> bool:
        """True if calls, reasoning or EOS tokens were removed from the text."""
        return bool(self.found) or self._tags.heard or self._ends.dropped

    @property
    def idle(self) -> bool:
        """True if all further events would pass unchanged."""
        return self._form is None and self._tags.over and not (self._moved or self._awaited)

    def events(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta) and event.index not in self._refusals:
                self._words(event.text, out)
            elif isinstance(event, Start | End) and isinstance(event.block, Text) and not event.block.refusal:
                self._awaited = isinstance(event, Start)
                if isinstance(event, End):
                    self._end_of_words(out)
                else:
                    self._moved = self._moved or event.index != self._next
            else:
                self._other(event, out)
        return out

    def _other(self, event: Event, out: list[Event]) -> None:
        match event:
            case Start() | Whole():
                self._end_open(out)
                number = self._numbers[event.index] = self._numbered()
                self._moved = self._moved or number != event.index
                if isinstance(event.block, Text):
                    self._refusals.add(event.index)
                if isinstance(event.block, ToolCall):
                    self._calls += 1
                    self._ids.add(event.block.id)
                out.append(msgspec.structs.replace(event, index=number))
            case TextDelta() | ThinkingDelta() | InputDelta() | End():
                if isinstance(event, ThinkingDelta):
                    self._thoughts.append(event.text)
                out.append(msgspec.structs.replace(event, index=self._numbers[event.index]))
            case Finished():
                self._end_of_words(out)
                self._end_open(out)
                self._calls_in_thoughts(out)
                out.append(msgspec.structs.replace(event, finish=self._finish(event.finish)))
            case _:
                if isinstance(event, Opened):
                    self._model = event.model
                elif isinstance(event, Failed):
                    self._end_of_words(out)
                out.append(event)

    def _finish(self, finish: Finish) -> Finish:
        return "tool_calls" if self.found and finish == "stop" else finish

    def _numbered(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    # ------------------------------------------------------------------------------------------------------------- text

    def _words(self, text: str, out: list[Event], *, ended: bool = False) -> None:
        for kind, stretch in self._tags.feed(text, ended=ended):
            if kind is Thinking:
                self._moved = True
                self._thoughts.append(stretch)
                self._say(Thinking, stretch, out)
            elif self._form is None:
                self._say(Text, stretch, out)
            else:
                self._scanner = self._scanner or CallScanner(self._form, self._declared)
                self._tell(self._scanner.feed(stretch), out)

    def _end_of_words(self, out: list[Event]) -> None:
        self._words("", out, ended=True)
        if self._scanner is not None:
            self._tell(self._scanner.close(), out)
            self._between(self._ends.end(), out)
            self._scanner = None
        self._end_open(out)

    def _say(self, kind: _Kind, text: str, out: list[Event]) -> None:
        if self._open is not None and self._open[0] is not kind:
            self._end_open(out)
        if self._open is None:
            self._open = (kind, self._numbered(), GrowingText())
            self._awaited = False
            out.append(Start(self._open[1], kind()) if kind is Thinking else Start(self._open[1], Text("")))
        _, number, content = self._open
        content.append(text)
        self._said = self._said or (kind is Text and not text.isspace())
        out.append(ThinkingDelta(number, text) if kind is Thinking else TextDelta(number, text))

    def _end_open(self, out: list[Event]) -> None:
        if self._open is not None:
            kind, number, content = self._open
            self._open = None
            out.append(End(number, kind(content.text())))

    def _tell(self, segments: Iterable[Piece], out: list[Event]) -> None:
        for segment in segments:
            if isinstance(segment, Found):
                self._between(self._ends.call(), out)
                self._space = ""
                self._end_open(out)
                self._call(segment, out)
            elif isinstance(segment, Lost):
                if not (segment.alone and (self._said or self._calls)):
                    shown = segment.written if len(segment.written) <= 60 else f"{segment.written[:60]}…"
                    self._report.add("text", f"kept as text, not a valid tool call ({segment.why}): {shown}")
                self._between(self._ends.feed(segment.written), out)
            else:
                self._between(self._ends.feed(segment), out)

    def _between(self, text: str, out: list[Event]) -> None:
        """Emit text, without white space that only separates calls."""
        if not text:
            return
        text, self._space = self._space + text, ""
        if self.found and self._open is None and text.isspace():
            self._space = text
        else:
            self._say(Text, text, out)

    # ------------------------------------------------------------------------------------------------------------ calls

    def _call(self, found: Found, out: list[Event]) -> None:
        if not self._declared.knows(found.name):
            self._report.add("name", f"call of an undeclared tool: {found.name}", subject=found.name)
        number = self._numbered()
        call = self._named(found)
        self.found += 1
        self._odd_arguments(found, call.id)
        begun = msgspec.structs.replace(call, arguments={}, arguments_text=None)
        out += (Start(number, begun), InputDelta(number, arguments_text(call)), End(number, call))

    def _odd_arguments(self, found: Found, call_id: str) -> None:
        arguments = object_or_none(found.arguments)
        if found.twice is not None:
            self._odd(f"duplicate argument {found.twice}: the last value is used", found, call_id)
        if found.arguments_text is not None:
            if found.arguments_text.strip():
                self._odd("arguments are not valid JSON, kept as text", found, call_id)
        elif arguments is None:
            self._odd("arguments are not a JSON object", found, call_id)
        else:
            for key, types in self._declared.misfits(found.name, arguments):
                self._odd(f"argument {key} does not have its declared type ({types})", found, call_id)

    def _odd(self, message: str, found: Found, call_id: str) -> None:
        self._report.add("argument", message, call_id=call_id, subject=found.name)

    def _named(self, found: Found) -> ToolCall:
        provider = self._form.provider if self._form is not None else "text"
        origin = Origin(provider, self._model, found.raw_id, identity="natural" if found.raw_id else "absent")
        index = self._calls
        while True:
            made = canonical_tool_id(
                provider=provider,
                raw_id=found.raw_id,
                tool_name=found.name,
                turn_key=self._turn_key,
                call_index=index,
            )
            if made not in self._ids:
                break
            index += 1
        self._ids.add(made)
        self._calls += 1
        return ToolCall(found.name, found.arguments, made, found.arguments_text, origin=origin)

    def _calls_in_thoughts(self, out: list[Event]) -> None:
        """Extract calls at the end of the reasoning if the reply has neither text nor calls."""
        if self._form is None or self._said or self._calls or not self._thoughts:
            return
        segments = pieces_of(self._thoughts.text(), self._form, self._declared)
        while segments and isinstance(last := segments[-1], str) and last.isspace():
            segments.pop()
        calls: list[Found] = []
        while segments and (isinstance(last := segments[-1], Found) or (isinstance(last, str) and last.isspace())):
            calls[:0] = [last] if isinstance(last, Found) else []
            segments.pop()
        for found in calls:
            self._report.add("text", f"call of {found.name} extracted from the reasoning: no text follows it")
            self._call(found, out)


def heard_reply(reply: Reply, extractor: Hearing) -> Reply:
    """The reply with extracted calls and reasoning; the same object if there are none."""
    events = extractor.events(events_of(reply))
    if not extractor.more_than_words:
        return reply
    blocks: list[Block] = [event.block for event in events if isinstance(event, End | Whole)]
    finish = next(event.finish for event in events if isinstance(event, Finished))
    native = None if reply.native is None else msgspec.structs.replace(reply.native, intact=False)
    return msgspec.structs.replace(reply, blocks=tuple(blocks), finish=finish, native=native)

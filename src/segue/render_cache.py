"""Incremental rendering: when a conversation has grown, only its newest messages are rendered for the same target.

The messages are cut in two. Those before the cut, the *prefix*, are rendered once. Later renders render a *window*: the
*anchor*, which stands for the prefix, and all messages after the cut. The entries that follow the anchor's are appended
to those of the prefix.

The result is that of a full render, because no pass looks from the messages after the cut to more than the anchor:

- The cut is between tool results and a reply that no target drops, so nothing is merged across it.
- Each call and its result are on the same side.
- Passes that read the current exchange read its user message and its first turn. These are the anchor.
- Ids and names continue from the prefix. Anything else that depends on all messages makes a message irregular, and a
  conversation with irregular messages after the cut, or in the exchange that is cut, is rendered whole.
- The fields of the body beside the messages must be equal for prefix and window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, takewhile
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Media, Message, Text, Thinking, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.history import History
from segue.canonical.json import encode_json
from segue.canonical.request import Request
from segue.pipeline import IdState, RenderedBody
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.names import NameMap

# How many entries are joined into one cached chunk.
_CHUNK_SIZE = 64

RenderFunction = Callable[[Request, Report, IdState | None], tuple[Transcript, RenderedBody]]
_Tools = frozenset[tuple[str, str]]


class CachedBody(msgspec.Struct, frozen=True):
    """A body in fragments, with its report. `newest_report` and `transcript` are those of the window only."""

    fragments: list[bytes]
    report: Report
    newest_report: Report
    transcript: Transcript
    names: NameMap


class _SplitBody(msgspec.Struct, frozen=True):
    """A rendered body, split into the entries of the conversation and the encoded fields before and after them."""

    before: bytes
    entries: list[bytes]
    after: bytes
    report: Report
    transcript: Transcript
    id_state: IdState

    @property
    def fields(self) -> tuple[bytes, bytes]:
        return self.before, self.after


class _Cut(msgspec.Struct, frozen=True):
    """A position in a list of messages, and the anchor that stands for the messages before it."""

    position: int
    anchor: tuple[Message, ...]


class RenderCache:
    """The cached render for one target, valid while request, target and policy stay the same.

    `conversation_key` is the key of the messages in a body, such as `messages` or `contents`. The first render is a
    full one, so that a target that is used once costs nothing more.
    """

    def __init__(self, conversation_key: str, render: RenderFunction) -> None:
        self._conversation_key = conversation_key
        self._render = render
        self._was_used = False
        self._edit_count = -1
        self._position = 0
        self._leading: tuple[Message, ...] = ()
        self._anchor: tuple[Message, ...] = ()
        self._rendered_anchor: _SplitBody | None = None
        self._fields = b"", b""
        self._chunks: list[bytes] = []
        self._open_entries: list[bytes] = []
        self._item_ids: set[str] = set()
        self._reports: list[Report] = []

    def render(self, request: Request, history: History) -> CachedBody | None:
        """Return the body for the current history, or None if a full render is needed."""
        was_used, self._was_used = self._was_used, True
        if not was_used or history.has_gaps or request.continues or request.options.response_format is not None:
            return None
        tools = frozenset((tool.name, tool.kind) for tool in request.tools)
        if history.edit_count != self._edit_count and not self._start(request, history, tools):
            return None
        window = self._render_window(request, history, tools)
        if window is None:
            self._edit_count = -1
        return window

    def _start(self, request: Request, history: History, tools: _Tools) -> bool:
        """Render the prefix and its anchor; return False if the messages can't be cut."""
        messages = history.slice(0)
        self._leading = tuple(takewhile(lambda message: message.speaker == "system", messages))
        cut = _find_cut(messages[len(self._leading) :], tools)
        if cut is None:
            return False
        position = len(self._leading) + cut.position
        prefix, tail = messages[:position], messages[position:]
        self._item_ids = {item_id for message in prefix for item_id in _item_ids(message)}
        if not self._is_regular(tail, tools):
            return False
        rendered = self._render_messages(request, prefix, None)
        self._rendered_anchor = self._render_messages(request, (*self._leading, *cut.anchor), rendered.id_state)
        self._position, self._anchor, self._fields = position, cut.anchor, rendered.fields
        self._chunks, self._open_entries, self._reports = [], [], []
        self._append(rendered.entries, rendered.report)
        self._edit_count = history.edit_count
        return True

    def _render_window(self, request: Request, history: History, tools: _Tools) -> CachedBody | None:
        tail = history.slice(self._position)
        anchored = self._rendered_anchor
        if anchored is None or not self._is_regular(tail, tools):
            return None
        id_state = anchored.id_state
        window = self._render_messages(request, (*self._leading, *self._anchor, *tail), id_state)
        count = len(anchored.entries)
        if window.fields != self._fields or window.entries[:count] != anchored.entries:
            return None
        new = window.entries[count:]
        newest = _report_after(anchored.report, window.report)
        cached = CachedBody(
            self._build_fragments(window, self._open_entries + new),
            ChainedReport((*self._reports, newest)),
            newest,
            window.transcript,
            id_state.names,
        )
        self._advance(request, tail, tools, new)
        return cached

    def _advance(self, request: Request, tail: list[Message], tools: _Tools, new: list[bytes]) -> None:
        """Move the cut to the last possible position."""
        anchored = self._rendered_anchor
        cut = _find_cut((*self._anchor, *tail), tools)
        if anchored is None or cut is None or cut.position <= len(self._anchor):
            return
        settled = tail[: cut.position - len(self._anchor)]
        closed = self._render_messages(request, (*self._leading, *self._anchor, *settled), anchored.id_state)
        entries = closed.entries[len(anchored.entries) :]
        if closed.fields != self._fields or entries != new[: len(entries)]:
            return
        self._rendered_anchor = self._render_messages(request, (*self._leading, *cut.anchor), anchored.id_state)
        self._anchor = cut.anchor
        self._position += len(settled)
        self._item_ids.update(item_id for message in settled for item_id in _item_ids(message))
        self._append(entries, _report_after(anchored.report, closed.report))

    def _append(self, entries: list[bytes], report: Report) -> None:
        """Append rendered entries to those of the prefix."""
        self._open_entries += entries
        while len(self._open_entries) >= _CHUNK_SIZE:
            self._chunks.append(b",".join(self._open_entries[:_CHUNK_SIZE]))
            del self._open_entries[:_CHUNK_SIZE]
        self._reports.append(report)

    def _render_messages(self, request: Request, messages: Sequence[Message], id_state: IdState | None) -> _SplitBody:
        report = Report()
        transcript, rendered = self._render(
            msgspec.structs.replace(request, messages=tuple(messages)), report, id_state
        )
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        part = before
        for key, value in rendered.body.items():
            if key == self._conversation_key:
                part = after
            else:
                part[key] = value
        return _SplitBody(
            encode_json(before),
            [encode_json(entry) for entry in rendered.body[self._conversation_key]],
            encode_json(after),
            report,
            transcript,
            id_state or IdState(rendered.ids, rendered.names),
        )

    def _build_fragments(self, window: _SplitBody, new: list[bytes]) -> list[bytes]:
        separator = b"" if window.before == b"{}" else b","
        fragments = [window.before[:-1] + separator + encode_json(self._conversation_key) + b":["]
        for chunk in (*self._chunks, b",".join(new)):
            fragments += [b",", chunk] if len(fragments) > 1 else [chunk]
        fragments.append(b"]}" if window.after == b"{}" else b"]," + window.after[1:])
        return fragments

    def _is_regular(self, messages: Sequence[Message], tools: _Tools) -> bool:
        """Return whether these messages are plain, with results of their own calls and no repeated items."""
        open_ids: set[str] = set()
        for message in messages:
            if not _is_plain(message, tools) or not self._item_ids.isdisjoint(_item_ids(message)):
                return False
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    open_ids.add(block.id)
                elif isinstance(block, ToolResponse):
                    if block.call_id not in open_ids:
                        return False
                    open_ids.discard(block.call_id)
        return True


def _find_cut(messages: Sequence[Message], tools: _Tools) -> _Cut | None:
    """Return the last cut between results and a reply, in an exchange that is plain up to there."""
    cut: _Cut | None = None
    open_ids: set[str] = set()
    called: set[str] = set()
    early_ids: set[str] = set()
    # The position of the user message of the exchange, None if it can't be cut; its anchor, once the first turn ended.
    start: int | None = None
    anchor: tuple[Message, ...] = ()
    last_reply: Message | None = None
    for position, message in enumerate(messages):
        if message.speaker == "human":
            start = position if _is_plain(message, tools) and _is_kept(message) else None
            anchor = ()
        elif not _is_plain(message, tools):
            start = None
        if start is not None and message.speaker == "ai" and messages[position - 1].speaker == "tool":
            if not anchor:
                anchor = tuple(messages[start:position])
                start = start if _is_complete(anchor) else None
            if start is not None and not open_ids and _is_kept(message) and not _ends_with_reasoning(last_reply):
                cut = _Cut(position, anchor)
        last_reply = message if message.speaker == "ai" else last_reply
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.kind != "hosted" and not block.broken:
                called.add(block.id)
                open_ids.add(block.id)
                # An early result would be moved across the cut.
                cut = None if block.id in early_ids else cut
            elif isinstance(block, ToolResponse):
                open_ids.discard(block.call_id)
                early_ids.update({block.call_id} - called)
        open_ids -= early_ids
    return cut


def _is_complete(anchor: Sequence[Message]) -> bool:
    """Return whether the first turn of an exchange has calls, and exactly their results."""
    call_ids = sorted(call.id for message in anchor for call in calls_of(message))
    return bool(call_ids) and call_ids == sorted(r.call_id for message in anchor for r in responses_of(message))


def _is_plain(message: Message, tools: _Tools) -> bool:
    """Return whether the message has only content that is rendered without regard to distant messages."""
    if message.prefill or message.speaker == "system":
        return False
    return all(_is_plain_block(block, message.speaker, tools) for block in message.blocks)


def _is_plain_block(block: Block, speaker: str, tools: _Tools) -> bool:
    match block:
        case Text():
            return speaker != "tool"
        case Thinking():
            return speaker == "ai"
        case Media():
            # The names of documents are made unique over all messages.
            return speaker == "human" and block.kind != "document"
        case ToolCall():
            is_client_call = block.kind != "hosted" and not block.broken and not block.origin.is_approval
            # Names of undeclared tools, and the parents of nested calls, are looked up in all messages.
            is_declared = (block.name, block.kind) in tools and block.origin.parent is None
            return speaker == "ai" and is_client_call and is_declared
        case ToolResponse():
            # Media in results may become a user message.
            is_text = all(isinstance(part, Text) for part in block.content or ())
            return speaker == "tool" and not block.hosted and is_text
        case _:
            return False


def _is_kept(message: Message) -> bool:
    """Return whether no target drops the message as empty."""
    return any(
        isinstance(block, ToolCall | Media) or (isinstance(block, Text) and block.text.strip())
        for block in message.blocks
    )


def _ends_with_reasoning(message: Message | None) -> bool:
    """Return whether the reply ends with reasoning, or with nothing: the next one may belong to that."""
    return message is None or not message.blocks or isinstance(message.blocks[-1], Thinking)


def _item_ids(message: Message) -> Iterator[str]:
    """Yield the ids of items. The `id` in the fragment of a call may be its raw id, which is no item's."""
    natives = [message.native]
    for block in message.blocks:
        if isinstance(block, ToolCall | ToolResponse | Thinking) and block.origin.item_id is not None:
            yield block.origin.item_id
        if not isinstance(block, ToolCall | ToolResponse):
            natives.append(block.native)
    for native in natives:
        item_id = native.fragment.get("id") if native is not None else None
        if isinstance(item_id, str):
            yield item_id


# --------------------------------------------------------------------------------------------------------- the report

_ID_LISTS = ("seen", "emitted_calls", "emitted_results")


def _report_after(anchored: Report, report: Report) -> Report:
    """Return the report without the ids of the anchor. Its findings stay: the report of the prefix has them too."""
    for name in _ID_LISTS:
        del getattr(report, name)[: len(getattr(anchored, name))]
    return report


class ChainedReport(Report):
    """A sequence of reports, joined on first access."""

    def __init__(self, parts: Sequence[Report]) -> None:
        last = parts[-1]
        self.target, self.id_scheme, self.model = last.target, last.id_scheme, last.model
        self.tool_format = last.tool_format
        self._parts = parts
        self._findings = None

    def __getattr__(self, name: str) -> Any:
        if name in _ID_LISTS:
            setattr(self, name, [entry for part in self._parts for entry in getattr(part, name)])
        elif name == "_places":
            self._places = {}
            self.extend(chain.from_iterable(part.findings for part in self._parts))
        else:
            raise AttributeError(name)
        return self.__dict__[name]

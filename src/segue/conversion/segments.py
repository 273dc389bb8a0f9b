"""Incremental rendering: when a conversation has grown, only its newest messages are rendered for the same target.

The messages are cut in two. Those before the cut, the *prefix*, are rendered once. A longer conversation is rendered as
a *window*: the *context*, which stands for the prefix, and all messages after the cut. The entries that follow the
context's are appended to those of the prefix. From time to time the cut is moved behind more
messages, and they become part of the prefix.

The result equals that of a full render, because passes need no message before the cut, except those in the context, to
render the messages after it:

- The cut is between tool results or a user message and a reply that no target drops, so nothing is merged across it.
- Each call and its results are on the same side.
- Passes that read the current exchange read its user message, for some targets also its first turn. These are the
  context; after a user message, it alone.
- Ids and names continue from the prefix. A conversation is rendered whole if anything else in a message after
  the cut, or in the exchange that is cut, depends on all messages: if it is not local.
- The settings must be equal for prefix and window.
- Findings are in the order of the stages that added them. The place of one that the prefix does not have is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, Thinking, ToolCall, ToolResponse
from segue.canonical.json import are_identical, encode_json
from segue.canonical.layered_map import LayeredMap
from segue.canonical.request import Options, Request
from segue.conversion.convert import RenderedBody, RenderState, SettingsChangedError
from segue.conversion.sent import FINGERPRINT_ITEMS, join_fingerprints
from segue.render.cuts import Cut, DeclaredTools, can_follow_cut, find_cuts, is_local
from segue.render.reasoning_prefix import extend_bound_prefix
from segue.render.report import IN_CALL_ORDER, ChainedReport, Finding, Report, Stage, append_report
from segue.render.transcript import Transcript
from segue.wire.names import NameMap

# The least number of messages that the cut is moved behind at once, which costs two renders.
_MIN_STEP = 8

RenderFunction = Callable[[Request, Report, RenderState | None], tuple[Transcript, RenderedBody]]


class ExtendedBody(Struct, frozen=True):
    """A body in fragments, with its report. `newest_report` and `transcript` are those of the window only.

    `prefix` is the prefix for the next, longer body. `settings` is the body with an empty conversation.
    """

    fragments: list[bytes]
    entries: Sequence[Any]
    """The entries of the newest messages."""
    fingerprint: bytes
    """The number of entries, the first and the last of them, as `encode_fingerprint` returns them."""
    settings: dict[str, Any]
    report: Report
    newest_report: Report
    transcript: Transcript
    names: NameMap
    prefix: RenderedPrefix

    def replace_field(self, conversation_key: str, key: str, value: object) -> ExtendedBody:
        """Return the body with another value of a key that stands after the conversation."""
        settings = {**self.settings, key: value}
        after = encode_json({name: settings[name] for name in [*settings][[*settings].index(conversation_key) + 1 :]})
        return msgspec.structs.replace(self, settings=settings, fragments=[*self.fragments[:-1], b"]," + after[1:]])


class _Window(Struct, frozen=True):
    """Rendered messages: their entries in the body, and the encoded settings before and after them."""

    entries: list[Any]
    before: bytes
    after: bytes
    report: Report
    id_counts: tuple[int, int, int]
    """The length of each list of ids in the report."""
    transcript: Transcript
    names: NameMap
    state: RenderState

    def has_same_settings(self, other: _Window) -> bool:
        return self.before == other.before and self.after == other.after

    def with_settings(self, other: _Window) -> _Window:
        """Return the window with the settings of another one, which are equal."""
        settings, transcript = other.state.settings, self.transcript
        request = msgspec.structs.replace(settings.declared.request, messages=transcript.request.messages)
        transcript = msgspec.structs.replace(
            transcript, request=request, system=other.transcript.system, tools=other.transcript.tools
        )
        state = msgspec.structs.replace(self.state, settings=settings)
        return msgspec.structs.replace(self, before=other.before, after=other.after, transcript=transcript, state=state)


class _NewMessages(Struct, frozen=True):
    """Messages after a prefix: the window that they were rendered in, their encoded entries, and the report on them."""

    messages: tuple[Message, ...]
    window: _Window
    entries: tuple[bytes, ...]
    report: Report


class RenderedPrefix(Struct, frozen=True):
    """The first messages of a conversation, rendered for one target. It starts empty, and `extend` returns longer ones.

    `render` renders the `request` with other messages. `conversation_key` is the key of the messages in a body, such as
    `messages` or `contents`.
    """

    request: Request
    render: RenderFunction
    conversation_key: str
    tool_names: frozenset[str] = frozenset()
    reads_first_turn: bool = True
    """Whether a pass reads the first turn of an exchange."""
    drops_blank_results: bool = False
    """Whether results are text, so that a message with blank ones is dropped."""
    declared: DeclaredTools | None = None
    """The declared tools, if calls of others are not local: same-API, their names are looked up in all messages."""
    length: int = 0
    """The number of messages in the prefix."""
    system_messages: tuple[Message, ...] = ()
    context: tuple[Message, ...] = ()
    context_window: _Window | None = None
    """The rendered context, with the state after all messages of the prefix.

    For an empty prefix no entries, with the state of its settings; None if these are not known.
    """
    chunks: tuple[bytes, ...] = ()
    """The encoded entries of the messages, joined."""
    entry_count: int = 0
    first_entries: tuple[bytes, ...] = ()
    last_entries: tuple[bytes, ...] = ()
    reports: tuple[Report, ...] = ()
    findings: frozenset[Finding] = frozenset()
    stages: frozenset[Stage] = frozenset()
    """The keys of all findings in the reports, and the stages that they were added in."""
    item_ids: LayeredMap[str, bool] = msgspec.field(default_factory=LayeredMap[str, bool])
    newest: _NewMessages | None = None
    """The messages after the prefix in the last body."""

    @classmethod
    def start(
        cls,
        request: Request,
        render: RenderFunction,
        conversation_key: str,
        *,
        same_api: bool,
        reads_first_turn: bool,
        drops_blank_results: bool,
    ) -> RenderedPrefix:
        """Return an empty prefix."""
        tool_names = frozenset(tool.name for tool in request.tools)
        declared = frozenset((tool.name, tool.kind) for tool in request.tools) if same_api else None
        return cls(request, render, conversation_key, tool_names, reads_first_turn, drops_blank_results, declared)

    def with_whole_render(
        self, messages: Sequence[Message], transcript: Transcript, rendered: RenderedBody
    ) -> RenderedPrefix:
        """Return an empty prefix for a conversation whose last body was rendered whole, with these messages."""
        window = self._make_window(transcript, rendered, rendered.report, None)
        entries = tuple(map(encode_json, window.entries))
        return msgspec.structs.replace(self, newest=_NewMessages(tuple(messages), window, entries, rendered.report))

    def keep_settings(self) -> RenderedPrefix | None:
        """Return the empty prefix with the settings of its first body, for another conversation that has the same.

        A finding is on the settings if it is found without messages too, and on the messages if it is found again with
        settings that are known. None if one is neither, or if the body has calls, whose names are not of the settings.
        """
        first = self.newest
        if self.length or first is None or first.window.transcript.contents.calls:
            return None
        ids = first.window.state.ids.start()
        state = msgspec.structs.replace(first.window.state, ids=ids, needs_same_options=True)
        known = msgspec.structs.replace(first.window, entries=[], report=Report(), id_counts=(0, 0, 0), state=state)
        window, empty = self._render_messages(first.messages, known), self._render_messages((), None)
        found, alone = first.report.stages, empty.report
        on_model = first.report.findings_of("model")
        if not found.keys() <= alone.stages.keys() | window.report.stages.keys() | {*on_model}:
            return None
        report = Report()
        for finding in (*on_model, *alone.findings):
            if finding.key in found:
                report.stage = found[finding.key]
                report.extend([finding], drops=alone.drops)
        if report.findings_of("inserted"):
            return None
        stages = frozenset(report.stages.values())
        return msgspec.structs.replace(
            self, context_window=known, reports=(report,), findings=frozenset(report.stages), stages=stages, newest=None
        )

    def share_settings(self, other: RenderedPrefix) -> RenderedPrefix | None:
        """Return the prefix with the settings of another one that has the same; None if they differ."""
        window, shared = self.context_window, other.context_window
        if window is None or shared is None or self.request != other.request or not window.has_same_settings(shared):
            return None
        if window.state.settings != shared.state.settings:
            return None
        newest = self.newest and msgspec.structs.replace(self.newest, window=self.newest.window.with_settings(shared))
        return msgspec.structs.replace(
            self, request=other.request, context_window=window.with_settings(shared), newest=newest
        )

    @property
    def options(self) -> Options:
        """The options that the messages were rendered with last."""
        window = self.newest.window if self.newest is not None else self.context_window
        return window.state.settings.options if window is not None else self.request.options

    def replace_entries(self, entries: Sequence[bytes]) -> RenderedPrefix:
        """Return the prefix with other entries of the last body's messages after it."""
        newest = self.newest and msgspec.structs.replace(self.newest, entries=tuple(entries))
        return msgspec.structs.replace(self, newest=newest)

    def extend(self, tail: Sequence[Message]) -> ExtendedBody | None:
        """Return the body with these messages after the prefix, or None if all messages must be rendered."""
        count = len(self.newest.messages) if self.newest is not None else 0
        try:
            longer = self._lengthen_by_newest(tail[count]) if self._begins_with_newest(tail) else None
            return longer.replace_newest(tail[count:]) if longer is not None else self._extend(tail, count)
        except SettingsChangedError:
            return None

    def _extend(self, tail: Sequence[Message], count: int) -> ExtendedBody | None:
        """Return the body with these messages, of which `count` are those of the last body."""
        # Only entries of the last body can be compared.
        limit = len(tail) if self.context_window is None else count
        cuts = [cut for cut in self._find_cuts(tail) if cut.position - len(self.context) <= limit]
        step = cuts[-1].position - len(self.context) if cuts else 0
        longer = None
        if step >= _MIN_STEP and self._are_local(tail[step:], _item_ids_of(tail[:step])):
            longer = self._lengthen(tail[:step], cuts[-1])
        return longer._render_window(tail[step:]) if longer is not None else self.replace_newest(tail)

    def extend_newest(self, messages: Sequence[Message]) -> ExtendedBody | None:
        """Return the last body with more messages, or None if all messages must be rendered."""
        longer = self._lengthen_by_newest(messages[0])
        return longer.replace_newest(messages) if longer is not None else None

    def replace_newest(self, messages: Sequence[Message]) -> ExtendedBody | None:
        """Return the body with these messages alone after the prefix, or None if all messages must be rendered."""
        if self.length and messages and not can_follow_cut(messages[0]):
            return None
        return self._render_window(messages) if self._are_local(messages) else None

    def lengthen(self, tail: Sequence[Message]) -> RenderedPrefix | None:
        """Return the prefix with these messages up to their last cut, or None if all messages must be rendered.

        Without a cut it is this prefix.
        """
        cuts = self._find_cuts(tail)
        count = cuts[-1].position - len(self.context) if cuts else 0
        if count <= 0:
            return self
        if self.context_window is not None and not self._are_local(tail[:count]):
            return None
        return self._lengthen(tail[:count], cuts[-1])

    def drop_entries(self) -> RenderedPrefix:
        """Return the prefix without the entries and reports of its messages. Bodies of it lack them."""
        return msgspec.structs.replace(self, chunks=(), reports=())

    @property
    def fragments(self) -> list[bytes]:
        """The body of the messages in the prefix."""
        return self._build_fragments(self.context_window, ()) if self.context_window is not None else []

    @property
    def encoded_context(self) -> list[bytes]:
        """The encoded entries of the context."""
        return list(map(encode_json, self.context_window.entries)) if self.context_window is not None else []

    def _find_cuts(self, tail: Sequence[Message]) -> list[Cut]:
        """Return the cuts in the context and these messages."""
        return find_cuts(
            (*self.context, *tail),
            self.declared,
            reads_first_turn=self.reads_first_turn,
            drops_blank_results=self.drops_blank_results,
        )

    def _render_window(self, tail: Sequence[Message]) -> ExtendedBody | None:
        """Render local messages after the prefix."""
        if self.context_window is None:
            return None
        window = self._render_after(self.context_window, tail)
        if window is None:
            return None
        entries = window.entries[len(self.context_window.entries) :]
        new = tuple(map(encode_json, entries))
        newest = _report_after(self.context_window, window.report)
        if not self._has_place_for(newest):
            return None
        return ExtendedBody(
            self._build_fragments(window, new),
            entries,
            join_fingerprints(self.entry_count + len(new), (*self.first_entries, *new), (*self.last_entries, *new)),
            window.state.settings.body,
            ChainedReport((*self.reports, newest)),
            newest,
            window.transcript,
            window.names,
            msgspec.structs.replace(self, newest=_NewMessages(tuple(tail), window, new, newest)),
        )

    def _has_place_for(self, report: Report) -> bool:
        """Return whether the place of new findings among all is certain: they are the first ones of their stage.

        Or they are in the order of the calls, which come after those of the prefix.
        """
        return all(
            key in self.findings or stage == IN_CALL_ORDER or stage not in self.stages
            for key, stage in report.stages.items()
        )

    def _begins_with_newest(self, tail: Sequence[Message]) -> bool:
        """Return whether these messages are those of the last body after the prefix, and more."""
        if self.newest is None or len(tail) <= len(self.newest.messages):
            return False
        return are_identical(tail[: len(self.newest.messages)], self.newest.messages)

    def _lengthen_by_newest(self, following: Message) -> RenderedPrefix | None:
        """Return the prefix with all messages of the last body, if there is a cut between them and the following one.

        They were rendered as the last ones, with all results, so their entries are the same in a longer body.
        """
        newest = self.newest
        if newest is None:
            return None
        end = len(self.context) + len(newest.messages)
        cut = next((cut for cut in self._find_cuts((*newest.messages, following)) if cut.position == end), None)
        if cut is None:
            return None
        system_messages = self.system_messages if self.length else tuple(takewhile(_is_system, newest.messages))
        return self._append(newest, cut, system_messages)

    def _lengthen(self, messages: Sequence[Message], cut: Cut) -> RenderedPrefix | None:
        """Return the prefix with these messages too; None if entries or settings differ from those of the last body."""
        if self.context_window is None:
            system_messages = tuple(takewhile(_is_system, messages))
            window = self._render_messages(messages, None)
            entries, report = window.entries, window.report
        else:
            system_messages = self.system_messages
            try:
                window = self._render_after(self.context_window, messages)
            except SettingsChangedError:
                return None
            if window is None:
                return None
            entries = window.entries[len(self.context_window.entries) :]
            report = _report_after(self.context_window, window.report)
        encoded = tuple(map(encode_json, entries))
        if self.newest is not None and encoded != self.newest.entries[: len(encoded)]:
            return None
        return self._append(_NewMessages(tuple(messages), window, encoded, report), cut, system_messages)

    def _append(self, new: _NewMessages, cut: Cut, system_messages: tuple[Message, ...]) -> RenderedPrefix:
        """Return the prefix with rendered messages appended, which end at the cut."""
        item_ids, new_item_ids = self.item_ids, _item_ids_of(new.messages)
        if new_item_ids:
            item_ids = item_ids.fork()
            for item_id in new_item_ids:
                item_ids[item_id] = True
        context_window, context, last = self.context_window if self.length else None, cut.context, new.window
        rendered = (*self.context, *new.messages[0 if context_window is not None else len(system_messages) :])
        if context_window is None and not any(message.speaker == "ai" for message in rendered):
            # The whole first request is rendered already.
            context = rendered
        bound = extend_bound_prefix(last.transcript, len(system_messages), context)
        last = msgspec.structs.replace(last, state=msgspec.structs.replace(last.state, bound=bound))
        if are_identical(context, rendered) and (context_window is None or bound is None):
            context_window = last
        elif context_window is None or not are_identical(context, self.context):
            context_window = self._render_messages((*system_messages, *context), last)
        if bound is not None:
            bound = msgspec.structs.replace(bound, rendered_length=len(context_window.transcript.messages))
        state = msgspec.structs.replace(last.state, bound=bound, needs_same_options=True)
        return msgspec.structs.replace(
            self,
            length=self.length + len(new.messages),
            system_messages=system_messages,
            context=context,
            context_window=msgspec.structs.replace(context_window, before=last.before, after=last.after, state=state),
            chunks=append_chunk(self.chunks, b",".join(new.entries)) if new.entries else self.chunks,
            entry_count=self.entry_count + len(new.entries),
            first_entries=(*self.first_entries, *new.entries)[:FINGERPRINT_ITEMS],
            last_entries=(*self.last_entries, *new.entries)[-FINGERPRINT_ITEMS:],
            reports=append_report(self.reports, new.report),
            findings=self.findings.union(new.report.stages),
            stages=self.stages.union(new.report.stages.values()),
            item_ids=item_ids,
            newest=None,
        )

    def _render_after(self, context_window: _Window, messages: Sequence[Message]) -> _Window | None:
        """Render the context and messages after it; None if its entries or the settings differ from the last body."""
        window = self._render_messages((*self.system_messages, *self.context, *messages), context_window)
        is_same = (
            window.has_same_settings(context_window)
            and window.entries[: len(context_window.entries)] == context_window.entries
        )
        return window if is_same else None

    def _render_messages(self, messages: Sequence[Message], earlier: _Window | None) -> _Window:
        report = Report()
        request = msgspec.structs.replace(self.request, messages=tuple(messages))
        transcript, rendered = self.render(request, report, earlier.state if earlier is not None else None)
        return self._make_window(transcript, rendered, report, earlier)

    def _make_window(
        self, transcript: Transcript, rendered: RenderedBody, report: Report, earlier: _Window | None
    ) -> _Window:
        if earlier is not None and rendered.settings is earlier.state.settings:
            before, after = earlier.before, earlier.after
        else:
            before, after = self._encode_settings(rendered.body)
        entries = rendered.body.get(self.conversation_key, [])
        id_counts = len(report.seen), len(report.emitted_calls), len(report.emitted_results)
        return _Window(entries, before, after, report, id_counts, transcript, rendered.names, rendered.state)

    def _encode_settings(self, body: dict[str, Any]) -> tuple[bytes, bytes]:
        """Encode the fields of a body before and after its conversation."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        part = before
        for key, value in body.items():
            if key == self.conversation_key:
                part = after
            else:
                part[key] = value
        return encode_json(before), encode_json(after)

    def _build_fragments(self, window: _Window, new: Sequence[bytes]) -> list[bytes]:
        separator = b"" if window.before == b"{}" else b","
        fragments = [window.before[:-1] + separator + encode_json(self.conversation_key) + b":["]
        for chunk in (*self.chunks, *([b",".join(new)] if new else [])):
            fragments += [b",", chunk] if len(fragments) > 1 else [chunk]
        fragments.append(b"]}" if window.after == b"{}" else b"]," + window.after[1:])
        return fragments

    def _are_local(self, messages: Sequence[Message], new_item_ids: frozenset[str] = frozenset()) -> bool:
        """Return whether these messages can be rendered in a window, with their own calls and no repeated items."""
        called: dict[str, str] = {}
        for message in messages:
            if message.prefill:
                return False
            for item_id in _item_ids(message):
                if item_id in self.item_ids or item_id in new_item_ids:
                    return False
            for block in message.blocks:
                if not is_local(block, self.declared):
                    return False
                if type(block) is ToolCall:
                    called[block.id] = block.name
                elif type(block) is ToolResponse:
                    name = called.get(block.call_id)
                    # A name that only earlier calls have would be projected in text too.
                    if name is None or not (block.name in (None, "", name) or block.name in self.tool_names):
                        return False
        return True


def append_chunk(chunks: tuple[bytes, ...], new: bytes) -> tuple[bytes, ...]:
    """Append encoded entries. Chunks are joined as they grow, so that there are always few."""
    while chunks and len(chunks[-1]) <= 2 * len(new):
        new = b",".join((chunks[-1], new))
        chunks = chunks[:-1]
    return (*chunks, new)


def _is_system(message: Message) -> bool:
    return message.speaker == "system"


def _item_ids_of(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset([item_id for message in messages for item_id in _item_ids(message)])


def _item_ids(message: Message) -> list[str]:
    """Return the ids of items. The `id` in the fragment of a call may be its raw id, which is no item's."""
    item_ids: list[str] = []
    natives = [message.native]
    for block in message.blocks:
        if isinstance(block, ToolCall | ToolResponse | Thinking) and block.origin.item_id is not None:
            item_ids.append(block.origin.item_id)
        if type(block) is not ToolCall and type(block) is not ToolResponse:
            natives.append(block.native)
    for native in natives:
        item_id = native.fragment.get("id") if native is not None else None
        if isinstance(item_id, str):
            item_ids.append(item_id)
    return item_ids


def _report_after(context_window: _Window, report: Report) -> Report:
    """Remove the ids of the context from the report. Its findings stay: joining reports merges equal ones."""
    seen, calls, results = context_window.id_counts
    del report.seen[:seen], report.emitted_calls[:calls], report.emitted_results[:results]
    return report

"""Remembered conversations: a body that continues one is converted by rendering only its newest items.

The bytes of a body up to a border, and those after its items, are compared. The items in between are parsed alone,
and their messages extend the rendered prefix of the conversation, with the ids that they have in the whole body.

The *state* at a border holds all that the items after it depend on. Its two sides are kept apart, so that a
conversation that is no body (`segue.Conversation`) continues from the second one alone.

What parsing depends on, in `RememberedConversation`:

- `frame`: the bytes around the newest items. `job`, `source`: the conversion and the API. `parsed_fields`: what the
  other fields are parsed to; items that change it (declare tools, say) are not parsed alone. `features`: what the API
  was detected by, which items after the border may contradict.
- `pairing`: `has_unique_ids`, `reply_counts`, `raw_ids` and `duplicate_or_pending` of the calls before, for the ids of
  those after (`canonical.pairing_state`). `bare_names`: names that only a walk over all calls resolves.
- `has_moved_markers`: whether a cache marker, of which a finding tells, has moved behind the border.
- `newest`: the items of the last body after the border, with which a longer body has to begin.
- `is_unchanged`, `is_newest_unchanged`: whether the settings and items before the border, and those after it, are sent
  as they are: then the body is.
- `calls`, `call_count`: the ids that calls of the reply must differ from. `sent_settings`, `sent_body`: the settings
  that the reply needs, kept to be the same value for all requests. `settings_size`: for the size in memory.

What rendering depends on, in `prefix`, a `RenderedPrefix`:

- `request`, `render`, `conversation_key`: the settings before passes, the target, and where its conversation is.
- `context_window`, with a `RenderState`: the `ids` and `names` at the target so far, the `settings` as rendered, the
  messages that reasoning is `bound` to, and `needs_same_options`, because passes may choose options by the messages.
- `system_messages`, `context`: the system messages at the beginning, and the opening of the current exchange, which
  passes read (`reads_first_turn`). They are rendered again before the messages after the border.
- `tool_names`, `declared`, `drops_blank_results`: which calls and results may stand after the border at all.
- `item_ids`: the second item with an id is dropped.
- `reports`, `findings`, `stages`: the findings so far, since those of one stage are in the order of the messages.
- `chunks`, `entry_count`, `first_entries`, `last_entries`, `length`: the bytes rendered so far, and what the id of the
  reply is made from.
- `newest`: the messages after the border as they were rendered last: they need no second render to move the border.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, ToolCall
from segue.canonical.call_history import CallColumns, CallHistory
from segue.canonical.json import are_identical, parse_json_object
from segue.canonical.pairing_state import PairingState
from segue.canonical.request import Options, Request
from segue.conversion.body import BodyFrame, cut_items, drop_last_items, is_unchanged, parse_items, split_items
from segue.conversion.convert import Conversion, ConvertJob
from segue.conversion.markers import has_markers, move_markers
from segue.conversion.segments import ExtendedBody, RenderedPrefix
from segue.conversion.sent import SentSettings
from segue.conversion.target import RenderTarget
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import Wire
from segue.wire.detect_body import ItemFeatures, detect_source, find_contradicting_api, find_item_features
from segue.wire.names import split_name

# Fields that parsing an item may depend on.
_ITEM_FIELDS = ("model", "store")
# The size of a conversation in memory, as a multiple of its bytes.
_SIZE_FACTOR = 10
# The size of the ids of a call in memory.
_CALL_SIZE = 1500


class ParsedItems(Struct, frozen=True):
    """Items of a conversation: as a JSON list, decoded and parsed."""

    data: bytes
    items: Sequence[Any]
    messages: tuple[Message, ...]


class ContinuedBody(Struct, frozen=True):
    """A converted body, and the conversation to remember from now on."""

    source: Wire
    data: bytes
    report: Report
    sent_settings: SentSettings
    history: CallHistory
    fingerprint: bytes
    transcript: Transcript
    """That of the newest items."""
    conversation: RememberedConversation


class _NewItems(Struct, frozen=True):
    """The items of a longer body that the last one did not have: they are after the `first` ones."""

    first: bytes
    data: bytes
    entries: Sequence[bytes] | None = None
    """The entries of the first items, if their cache markers are gone."""


class RememberedConversation(Struct, frozen=True):
    """A conversation up to a border, and everything that the conversion of a longer body continues from."""

    frame: BodyFrame
    job: ConvertJob
    source: Wire
    parsed_fields: Request
    """The request parsed from the fields that items are parsed with, and no items."""
    prefix: RenderedPrefix
    pairing: PairingState
    newest: ParsedItems
    """The items after the border in the last body."""
    is_unchanged: bool
    is_newest_unchanged: bool
    settings_size: int = 0
    """The number of bytes around the items."""
    features: ItemFeatures = frozenset()
    """What the API of the body was detected by in its items."""
    bare_names: frozenset[str] = frozenset()
    """The names of tools in a namespace, which calls may omit."""
    has_moved_markers: bool = False
    """Whether content before the border had a cache marker when it was rendered cross-API, which is in later content.

    Its only effect is the finding that it is dropped, so there must be one in the later content.
    """
    call_count: int = 0
    calls: CallColumns | None = None
    """The number of calls before the border, and their columns; None if a column does not hold all of a call."""
    sent_settings: SentSettings | None = None
    sent_body: dict[str, Any] | None = None
    """The settings of the last body that its reply needs, and that body with an empty conversation."""

    @property
    def size(self) -> int:
        """The approximate number of bytes in memory."""
        encoded = self.frame.size + sum(map(len, self.prefix.chunks))
        decoded = self.settings_size + len(self.newest.data)
        return encoded + _SIZE_FACTOR * decoded + _CALL_SIZE * self.call_count

    @property
    def options(self) -> Options:
        """The options that the last body was rendered with."""
        return self.prefix.options

    def start_another(self) -> RememberedConversation | None:
        """Return an empty conversation with the settings of this one, of which one body was converted.

        None if its items can't be parsed alone, such as those that declare tools.
        """
        if self._parse_items(self.newest.items) is None:
            return None
        prefix = self.prefix.keep_settings()
        empty = ParsedItems(b"[]", (), ())
        return prefix and msgspec.structs.replace(
            self, prefix=prefix, newest=empty, is_newest_unchanged=True, features=frozenset(), settings_size=0
        )

    def share_settings(self, other: RememberedConversation) -> RememberedConversation:
        """Return the conversation with the settings of another one that has the same tail, if they are equal."""
        prefix = self.prefix.share_settings(other.prefix)
        if prefix is None or self.parsed_fields != other.parsed_fields:
            return self
        frame = msgspec.structs.replace(self.frame, tail=other.frame.tail)
        fields = {"sent_settings": None, "sent_body": None, "settings_size": 0}
        return msgspec.structs.replace(self, frame=frame, parsed_fields=other.parsed_fields, prefix=prefix, **fields)

    def find_new_items(self, items: bytes) -> _NewItems | None:
        """Return the new items of a body with this frame; None if it does not begin with those of the last body."""
        first = self.newest.data
        new = cut_items(items, first)
        if new is not None:
            return _NewItems(first, new)
        earlier, given = split_items(first), split_items(items)
        if self.prefix.newest is None or len(given) <= len(earlier):
            return None
        entries = move_markers(earlier, self.newest.items, given[: len(earlier)], self.prefix.newest.entries)
        first = drop_last_items(items, given[len(earlier) :])
        new = cut_items(items, first)
        return _NewItems(first, new, entries) if new is not None and entries is not None else None

    def extend(self, data: bytes, new: _NewItems) -> ContinuedBody | None:
        """Convert a body with all items of the last one and new ones; None if the whole body must be converted.

        This and `replace_newest` raise `SettingsChangedError` if it must because the new items change the options.
        """
        items = parse_items(new.data)
        has_moved_markers = self.has_moved_markers or (new.entries is not None and not self._is_same_api)
        if has_moved_markers and not has_markers(items):
            return None
        prefix = self.prefix if new.entries is None else self.prefix.replace_entries(new.entries)
        longer = msgspec.structs.replace(
            self, prefix=prefix, frame=self.frame.move_start(data, new.first), has_moved_markers=has_moved_markers
        )
        extended = longer.append(new.data, items)
        return extended and extended[0].finish(data, extended[1])

    def append(self, data: bytes, items: Sequence[Any]) -> tuple[RememberedConversation, ExtendedBody] | None:
        """Return the conversation with more items after those of the last body; None if they depend on those."""
        longer = self._move_border()
        messages = longer._parse_items(items)
        if not messages or messages[0].speaker != "ai":
            return None
        extended = self.prefix.extend_newest(messages)
        return extended and longer._with_newest(ParsedItems(data, items, messages), extended)

    def replace_newest(self, data: bytes, items_data: bytes) -> ContinuedBody | None:
        """Convert a body with other items after the border; None if the whole body must be converted."""
        items = parse_items(items_data)
        if self.has_moved_markers and not has_markers(items):
            return None
        messages = self._parse_items(items)
        if messages is None:
            return None
        extended = self.prefix.replace_newest(messages)
        if extended is None:
            return None
        replaced = self._with_newest(ParsedItems(items_data, items, messages), extended)
        return replaced and replaced[0].finish(data, extended)

    def _with_newest(
        self, newest: ParsedItems, extended: ExtendedBody
    ) -> tuple[RememberedConversation, ExtendedBody] | None:
        """Return this conversation with its newest items; None if its API would not be detected with them."""
        features = self.features | _find_features(newest.items, self.source, self.job)
        if features != self.features and not self._is_source(features):
            return None
        longer = msgspec.structs.replace(
            self,
            prefix=extended.prefix,
            newest=newest,
            is_newest_unchanged=are_identical(extended.entries, newest.items),
            features=features,
        )
        return longer, extended

    def finish(self, data: bytes, extended: ExtendedBody) -> ContinuedBody:
        """Return the converted body, with this conversation to remember."""
        if self.frame.volatile and self._is_same_api:
            value = parse_json_object(self.frame.find_volatile(data))[0]
            extended = extended.replace_field(self.prefix.conversation_key, self.frame.volatile, value)
        settings = self._find_sent_settings(extended)
        return ContinuedBody(
            self.source,
            data if self.is_unchanged and self.is_newest_unchanged else b"".join(extended.fragments),
            extended.report,
            settings,
            self._build_history(data, self.newest.messages),
            extended.fingerprint,
            extended.transcript,
            msgspec.structs.replace(self, sent_settings=settings, sent_body=extended.settings),
        )

    def _is_source(self, features: ItemFeatures) -> bool:
        """Return whether a body with items of these features is of the same API."""
        body: Mapping[str, Any] = self.prefix.request.native.fragment if self.prefix.request.native is not None else {}
        if self.job.source is None:
            return detect_source(body, features) == self.source.name
        return find_contradicting_api(body, self.source.name, features) is None

    def _find_sent_settings(self, extended: ExtendedBody) -> SentSettings:
        """Return the settings of the body, the same value for all bodies with the same names."""
        names, settings = extended.names, self.sent_settings
        if settings is not None and self.sent_body is extended.settings and names.has_same_changes(settings.names):
            return settings
        return SentSettings(
            self.prefix.request,
            names,
            {key: value for key, value in extended.settings.items() if key != self.prefix.conversation_key},
        )

    def _build_history(self, data: bytes, messages: Sequence[Message]) -> CallHistory:
        def parse_messages() -> Sequence[Message]:
            return self.source.parse_request(parse_json_object(data)[0]).messages

        calls = _find_calls(messages)
        columns = self.calls.add(calls) if self.calls is not None else None
        return CallHistory(parse_messages, columns)

    def _parse_items(self, items: Sequence[Any]) -> tuple[Message, ...] | None:
        """Parse items after the border; None if they depend on those before, or are not just messages."""
        if not items:
            return ()
        parsed = _parse_fields(self.source, self.prefix.request, items)
        if msgspec.structs.replace(parsed, messages=(), native=None) != self.parsed_fields:
            return None
        if self.bare_names and not self.bare_names.isdisjoint(call.name for call in _find_calls(parsed.messages)):
            return None
        messages = self.pairing.continue_ids(parsed.messages)
        if messages is None or self.job.restore is None:
            return messages
        report = Report()
        restored = self.job.restore(messages, report)
        return restored if report.stages.keys() <= self.prefix.findings else None

    @property
    def _is_same_api(self) -> bool:
        return self.source.name == self.job.target.name

    def _move_border(self) -> RememberedConversation:
        """Return the conversation after its newest messages, without their place in the bytes and their rendering."""
        messages = self.newest.messages
        calls = _find_calls(messages)
        return msgspec.structs.replace(
            self,
            pairing=self.pairing.add(messages),
            is_unchanged=self.is_unchanged and self.is_newest_unchanged,
            call_count=self.call_count + len(calls),
            calls=self.calls.add(calls) if self.calls is not None else None,
        )


def start_conversation(
    conversion: Conversion, job: ConvertJob, frame: BodyFrame, items_data: bytes
) -> RememberedConversation | None:
    """Return the conversation of a body that was converted whole; None if it can't be continued."""
    source, request, rendered = conversion.source, conversion.request, conversion.rendered
    target = RenderTarget(job.target, conversion.transcript.model, None, job.tool_format, job.policy, None)
    if request.native is None or not target.can_extend(request):
        return None
    if frame.volatile and source.name == job.target.name:
        keys = [*rendered.body]
        if frame.volatile not in keys or keys.index(frame.volatile) < keys.index(job.target.conversation_key):
            return None
        if rendered.body[frame.volatile] != request.native.fragment[frame.volatile]:
            return None
    key = source.conversation_key
    items: Sequence[Any] = request.native.fragment[key]
    is_given = is_unchanged({**rendered.body, key: []}, {**request.native.fragment, key: []})
    request = _drop_items(request, source)
    declared = msgspec.structs.replace(
        rendered.settings.declared, request=_drop_items(rendered.settings.declared.request, source)
    )
    settings = msgspec.structs.replace(rendered.settings, declared=declared)
    prefix = target.start_prefix(request).with_whole_render(
        conversion.request.messages, conversion.transcript, msgspec.structs.replace(rendered, settings=settings)
    )
    names = (split_name(tool.name) for tool in request.tools)
    return RememberedConversation(
        frame,
        job,
        source,
        msgspec.structs.replace(_parse_fields(source, request, []), native=None),
        prefix,
        PairingState(source.unique_call_ids),
        ParsedItems(items_data, items, conversion.request.messages),
        is_given,
        are_identical(rendered.body.get(key, ()), items),
        frame.size + len(frame.tail) + len(frame.end),
        _find_features(items, source, job),
        calls=CallColumns(source.provider, (), (), ()),
        bare_names=frozenset(bare for namespace, bare in names if namespace is not None),
    )


def _find_features(items: Sequence[Any], source: Wire, job: ConvertJob) -> ItemFeatures:
    """Return what the API of a body is detected by; nothing where its conversation key is enough."""
    is_certain = job.source is not None and source.conversation_key != "messages"
    return frozenset() if is_certain else find_item_features(items)


def _find_calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [block for message in messages for block in message.blocks if type(block) is ToolCall]


def _parse_fields(source: Wire, request: Request, items: Sequence[Any]) -> Request:
    """Parse items with the fields of a body that they may depend on."""
    body: Mapping[str, Any] = request.native.fragment if request.native is not None else {}
    fields = {key: body[key] for key in _ITEM_FIELDS if key in body}
    return source.parse_request({**fields, source.conversation_key: items})


def _drop_items(request: Request, source: Wire) -> Request:
    """Return a request without its messages."""
    native = request.native
    if native is not None:
        native = msgspec.structs.replace(native, fragment={**native.fragment, source.conversation_key: []})
    return msgspec.structs.replace(request, messages=(), native=native)

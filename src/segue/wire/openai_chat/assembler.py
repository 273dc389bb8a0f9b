"""Assembly of tool calls from the deltas of a stream. Emitted arguments are never changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import cast

from segue.canonical.blocks import Origin, ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import parse_argument_text, to_plain_json
from segue.wire.json_values import JsonObject, object_or_none, optional_object
from segue.wire.stream.deltas import ARGUMENT_PLACEHOLDERS, ArgumentsBuffer, arguments_to_text, is_complete_object
from segue.wire.stream.parse import PayloadReader, join_surrogates

# Placeholders that servers send before the arguments: nothing, or an empty value that is then sent again whole.
_EMPTY_ARGUMENTS = frozenset({"", "{", "{}", "null"})
_CALL_KEYS = frozenset({"index", "id", "type", "function", "custom"})
# A placeholder with more white space than this around it is not recognized.
_MAX_PLACEHOLDER = 64
# No API accepts a name of this length: what follows is not added to it.
_MAX_NAME = 4096
# No server numbers calls beyond this; a longer number is no index.
_MAX_INDEX_DIGITS = 18


class _OpenCall:
    """A call that has not ended. `emitted` is the arguments text already sent as events.

    `pending` is text at the start of the arguments that may be a placeholder.
    """

    __slots__ = (
        "block_index",
        "call",
        "custom",
        "emitted",
        "ended",
        "extra",
        "index",
        "kind",
        "legacy",
        "name",
        "pending",
        "position",
        "raw_id",
    )

    def __init__(self, position: int, index: int | None, *, legacy: bool = False) -> None:
        self.position = position
        self.index = index
        self.legacy = legacy
        self.raw_id: str | None = None
        self.name = ""
        self.kind: object = None
        self.custom = False
        self.extra: JsonObject = {}
        self.emitted = ArgumentsBuffer()
        self.pending = ""
        self.block_index: int | None = None
        self.call: ToolCall | None = None
        self.ended = False

    def arguments(self) -> str:
        return self.emitted.text() + self.pending

    def has_arguments(self) -> bool:
        return bool(self.emitted or self.pending)

    def is_complete(self) -> bool:
        """Return whether the arguments are a complete JSON object."""
        # Pending text is never one: only placeholders are held back.
        return not self.custom and not self.pending.strip() and self.emitted.is_complete_object()

    def is_placeholder(self) -> bool:
        """Return whether the arguments are a placeholder, which the real ones may replace."""
        return len(self.emitted) <= _MAX_PLACEHOLDER and self.arguments().strip() in ARGUMENT_PLACEHOLDERS


class CallAssembler:
    """Assembles tool calls from deltas, however a server numbers, names and repeats them.

    By the specification (OAI-CHAT-18) the index identifies a call, and id and name are sent once. Servers omit the
    index or always send the same one, repeat, change or omit ids, split names, and send whole calls; they never
    continue arguments that are complete. So a call is found by its index, else by its id, else it is the last one, and
    a new call starts where a name arrives that cannot belong to the current call.
    """

    def __init__(self, reader: PayloadReader, provider: str) -> None:
        self._reader = reader
        self._provider = provider
        self._slots: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}
        self._legacy: _OpenCall | None = None
        # Calls with deltas since the last call was opened; no other can have become complete.
        self._changed: dict[int, _OpenCall] = {}
        self.model: str | None = None

    def __bool__(self) -> bool:
        return bool(self._slots)

    # --------------------------------------------------------------------------------------------------------- parsing

    def add_deltas(self, entries: object) -> None:
        """Add the value of `tool_calls` in one delta."""
        values = cast("list[object]", entries) if isinstance(entries, list) else [entries]
        for value in values:
            if (entry := optional_object(value, "delta.tool_calls")) is not None:
                self._add_delta(entry)

    def add_legacy_delta(self, entry: JsonObject) -> None:
        """Add the value of `function_call` in one delta: one call, without an id."""
        slot = self._legacy = self._legacy or self._open_call(None, legacy=True)
        self._update_call(
            slot, None, join_surrogates(_text_or_empty(entry.get("name"))), arguments_to_text(entry.get("arguments"))
        )

    def _add_delta(self, entry: JsonObject) -> None:
        custom = object_or_none(entry.get("custom"))
        detail = custom if custom is not None else object_or_none(entry.get("function")) or {}
        text = arguments_to_text(detail.get("input" if custom is not None else "arguments"))
        if self._reader.has_split_surrogates:
            entry, detail = cast("tuple[JsonObject, JsonObject]", (to_plain_json(entry), to_plain_json(detail)))
        index, raw_id = _parse_index(entry.get("index")), raw_id_or_none(entry.get("id"))
        name = _text_or_empty(detail.get("name"))
        slot = self._find_call(index, raw_id, name)
        if slot is None or _starts_new_call(slot, index, raw_id, name, text):
            if slot is None and not (name or text or raw_id or custom):
                return
            slot = self._open_call(index)
        elif raw_id is not None and raw_id == slot.raw_id and name == slot.name and slot.emitted:
            # The arguments are sent again from the start: only the new rest is used.
            received = len(slot.emitted) + len(slot.pending)
            if received <= len(text) and text.startswith(slot.arguments()):
                text = text[received:] if len(text) == received or is_complete_object(text) else text
        slot.custom = slot.custom or (custom is not None and slot.call is None)
        slot.kind = slot.kind or entry.get("type")
        slot.extra.update({key: value for key, value in entry.items() if key not in _CALL_KEYS and value is not None})
        self._update_call(slot, raw_id, name, text)
        is_plain = not (name or raw_id or slot.pending or slot.custom or slot.ended)
        if text and is_plain and _CALL_KEYS.issuperset(entry):
            self._reader.set_delta_template("arguments", text, partial(self._append_arguments, slot))

    def _append_arguments(self, slot: _OpenCall, text: str) -> None:
        """Append arguments to an open call (delta template)."""
        if slot.block_index is not None and text:
            self._reader.add_input(slot.block_index, text)
            slot.emitted.append(text)

    def _find_call(self, index: int | None, raw_id: str | None, name: str) -> _OpenCall | None:
        """Return the call that a delta continues, by index and id; None if there is none."""
        if index is not None and index in self._by_index:
            indexed = self._by_index[index]
            if raw_id is not None and indexed.raw_id not in (None, raw_id) and raw_id in self._by_id:
                return self._by_id[raw_id]
            return indexed
        if raw_id is not None and raw_id in self._by_id:
            return self._by_id[raw_id]
        # COMP-24
        if self._slots and raw_id is None and (index is None or not name):
            return self._slots[-1]
        return None

    def _open_call(self, index: int | None, *, legacy: bool = False) -> _OpenCall:
        for _, slot in sorted(self._changed.items()):
            self._start_call(slot)
            if not slot.ended and slot.is_complete():
                self._end_call(slot, ended=True)
        self._reader.delta_template = None
        slot = _OpenCall(len(self._slots), index, legacy=legacy)
        self._changed = {slot.position: slot}
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    def _update_call(self, slot: _OpenCall, raw_id: str | None, name: str, text: str) -> None:
        if raw_id is not None and slot.raw_id is None and slot.block_index is None:
            slot.raw_id = raw_id
            self._by_id[raw_id] = slot
        self._changed[slot.position] = slot
        if name and slot.block_index is None and name != slot.name and len(slot.name) < _MAX_NAME:
            # The name is sent in parts, or again with more.
            slot.name = name if name.startswith(slot.name) else slot.name + name
        if not text or slot.ended:
            return
        if slot.pending.strip() in ARGUMENT_PLACEHOLDERS and text.lstrip().startswith("{"):
            slot.pending = ""
        slot.pending += text
        if slot.emitted or len(slot.pending) > _MAX_PLACEHOLDER or slot.pending.strip() not in _EMPTY_ARGUMENTS:
            self._emit_arguments(slot)

    # -------------------------------------------------------------------------------------------------------- emitting

    def _start_call(self, slot: _OpenCall) -> ToolCall:
        if slot.call is None:
            identity = "absent" if slot.legacy else "natural" if slot.raw_id else "synthetic"
            origin = Origin(self._provider, self.model, slot.raw_id, identity=identity)
            kind = "custom" if slot.custom else "function"
            slot.call = self._reader.assign_id(ToolCall(slot.name, kind=kind, origin=origin))
            slot.block_index = self._reader.emit_block_start(slot.call)
        return slot.call

    def _emit_arguments(self, slot: _OpenCall) -> None:
        self._start_call(slot)
        if slot.block_index is not None and slot.pending:
            self._reader.add_input(slot.block_index, slot.pending)
            slot.emitted.append(slot.pending)
            slot.pending = ""

    def _end_call(self, slot: _OpenCall, *, ended: bool) -> None:
        self._emit_arguments(slot)
        slot.ended = True
        if slot.call is None or slot.block_index is None:
            return
        # Joined surrogates may differ from the raw deltas: the emitted text is used.
        text = self._reader.finish_text(slot.block_index)
        slot.emitted = ArgumentsBuffer(text)
        call = slot.call
        arguments, exact = (text, None) if slot.custom else parse_argument_text(text)
        slot.call = ToolCall(
            call.name,
            None if not ended else arguments,
            call.id,
            text if not ended else exact,
            call.kind,
            call.origin,
            broken=not ended,
        )
        self._reader.emit_block_end(slot.block_index, slot.call)

    def end_all(self, *, finished: bool, truncated: bool) -> list[ToolCall]:
        """End all open calls. `finished`: the reply was completed; `truncated`: it reached the token limit."""
        for slot in self._slots:
            if not slot.ended:
                last = slot is self._slots[-1]
                cut = not finished or (truncated and last and parse_argument_text(slot.arguments())[0] in (None, {}))
                self._end_call(slot, ended=not cut or slot.is_complete())
        return [slot.call for slot in self._slots if slot.call is not None]

    def entries(self) -> Iterable[tuple[bool, JsonObject]]:
        """Yield the entries of the equivalent whole message, each with whether it is a legacy `function_call`."""
        for slot in self._slots:
            text = slot.arguments()
            if slot.legacy:
                yield True, {"name": slot.name, "arguments": text}
                continue
            key, field = ("custom", "input") if slot.custom else ("function", "arguments")
            entry: JsonObject = {"id": slot.raw_id} if slot.raw_id is not None else {}
            kind = slot.kind if isinstance(slot.kind, str) and slot.kind else key
            yield False, {**entry, "type": kind, key: {"name": slot.name, field: text}, **slot.extra}


def _starts_new_call(slot: _OpenCall, index: int | None, raw_id: str | None, name: str, text: str) -> bool:
    """Return whether a delta with a tool name starts a new call instead of continuing the one found."""
    if not name or slot.legacy:
        return False
    # The call was opened by an id or arguments, and its name follows.
    if slot.name == "" and slot.raw_id in (None, raw_id):
        return False
    has_other_id = raw_id is not None and slot.raw_id is not None and raw_id != slot.raw_id
    has_other_name = name != slot.name
    is_whole = is_complete_object(text)
    if not slot.has_arguments():
        if has_other_id:
            # COMP-06: one index for all calls. A new id with the same name and a piece of arguments is a changed id.
            return has_other_name or not text or is_whole
        # Whole calls without index and id; otherwise this is the rest of the name, or the name again.
        return raw_id is None and index is None and has_other_name and is_whole
    is_placeholder = slot.is_placeholder()
    if not is_placeholder and not slot.is_complete():
        # Servers repeat the name, and some change the id, in each piece of the arguments.
        return False
    if has_other_id:
        # COMP-06: one index for all calls.
        return True
    if raw_id is not None and raw_id == slot.raw_id:
        # One id for all calls. The same arguments again are the same call, sent whole after its pieces.
        has_other_index = index is not None and index != slot.index
        return has_other_index or (is_whole and text != slot.arguments())
    # Calls without ids. The name may be repeated with the arguments that replace a placeholder.
    is_repeated_name = is_placeholder and not has_other_name
    return not is_repeated_name and (bool(text) or has_other_name)


def _parse_index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MAX_INDEX_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""

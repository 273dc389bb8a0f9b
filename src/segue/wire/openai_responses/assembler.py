"""Assembly of output items from the events of a stream. Emitted text is never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import parse_argument_text, to_plain_json
from segue.wire.json_values import JsonObject, integer_or_none, object_or_none, optional_string, string_or_none
from segue.wire.openai_responses.context import ParseContext, ResponsesDialect, has_whole_arguments
from segue.wire.openai_responses.item_types import CALL_TYPE_BY_OUTPUT, CALL_TYPES, FUNCTION_TYPES, item_type_or_none
from segue.wire.openai_responses.messages import parse_reply_items
from segue.wire.openai_responses.request import create_parse_context
from segue.wire.openai_responses.stream_items import INPUT_KEYS, ItemLookup, PartialItem, PartialPart, TextKind
from segue.wire.stream.deltas import arguments_to_text
from segue.wire.stream.events import arguments_text
from segue.wire.stream.parse import PayloadReader

_SUMMARY_SEPARATOR = "\n\n"


class ItemAssembler:
    """Assembles items from whichever events a server sends.

    By the specification an item is added, its parts receive deltas, and parts and item are done (OAI-RESP-22). Servers
    omit deltas, parts, `added` or `done`. A full text in an event is compared with what was emitted: the missing rest
    is emitted then, and emitted text is never changed.
    """

    def __init__(self, reader: PayloadReader, dialect: ResponsesDialect) -> None:
        self._reader = reader
        self._dialect = dialect
        self._lookup = ItemLookup()
        self._current_key: object = None
        self._current: tuple[PartialItem, PartialPart] | None = None
        self.model: str | None = None
        self.stored = True
        self.is_truncated = False
        """Whether the response reached its token limit."""
        self._held: list[tuple[PartialItem, bool]] = []
        """Ended items of calls and outputs, with whether each is complete: a call with an output is the provider's."""

    # ---------------------------------------------------------------------------------------------------------- deltas

    def on_item_added(self, payload: JsonObject) -> None:
        """Read `output_item.added`: content in it may be repeated in deltas."""
        item = object_or_none(payload.get("item"))
        if item is None:
            return
        index, item_id = payload.get("output_index"), item.get("id")
        existing = self._lookup.find_or_create_for(item, index, done=False)
        if existing.fragment and item_id is not None and existing.fragment.get("id") not in (None, item_id):
            # The server gives all items this index.
            existing = self._lookup.create(existing.kind, index, item_id)
        if existing.ended:
            return
        existing.fragment = {**existing.fragment, **item}
        if existing.kind in FUNCTION_TYPES:
            self._begin_call(existing)

    def on_text_delta(self, payload: JsonObject, kind: TextKind) -> None:
        text = optional_string(payload.get("delta"), "delta")
        if text is None:
            return
        position = (payload.get("item_id"), payload.get("output_index"), payload.get(kind.index_key), kind.part_type)
        if position == self._current_key and self._current is not None:
            item, part = self._current
            if not payload.get("logprobs"):
                self._set_delta_template(text, partial(self._append_text, item, part))
        else:
            item = self._lookup.find_or_create(position[0], position[1], kind.item_type)
            if item.ended:
                return
            part = self._get_part(item, position[2], kind)
            self._current_key, self._current = position, (item, part)
        logprobs = payload.get("logprobs")
        if logprobs and isinstance(logprobs, list):
            values = cast("list[object]", logprobs)
            values = cast("list[object]", to_plain_json(values)) if self._reader.has_split_surrogates else values
            part.logprobs += values
            self._append_text(item, part, text, {"logprobs": values})
        elif text:
            self._append_text(item, part, text)

    def clear_current(self) -> None:
        """Clear the current text: the next event is not one of its deltas."""
        self._current = None

    def _set_delta_template(self, text: str, emit: Callable[[str], object]) -> None:
        self._reader.set_delta_template("delta", text, emit)

    def on_text_done(self, payload: JsonObject, kind: TextKind) -> None:
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), kind.item_type)
        if not item.ended:
            part = self._get_part(item, payload.get(kind.index_key), kind)
            self._append_missing_text(item, part, payload.get(kind.text_key))

    def on_part(self, payload: JsonObject, kinds: dict[object, TextKind], list_key: str, *, done: bool) -> None:
        """Read `content_part.added` and `.done`, and those of summaries."""
        fragment = object_or_none(payload.get("part")) or {}
        kind = fragment.get("type")
        text_kind = kinds.get(kind) if isinstance(kind, str) else None
        if text_kind is None or text_kind.list_key != list_key:
            return
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), text_kind.item_type)
        if item.ended:
            return
        part = self._get_part(item, payload.get(text_kind.index_key), text_kind)
        part.fragment = {**part.fragment, **fragment}
        if done:
            self._append_missing_text(item, part, fragment.get(text_kind.text_key))
        elif text_kind.item_type == "message":
            self._begin_text(item, part)

    def on_annotation(self, payload: JsonObject, kind: TextKind) -> None:
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), kind.item_type)
        if (annotation := object_or_none(payload.get("annotation"))) is not None and not item.ended:
            self._get_part(item, payload.get(kind.index_key), kind).annotations.append(annotation)

    def _get_part(self, item: PartialItem, number: object, kind: TextKind) -> PartialPart:
        key = (kind.list_key, integer_or_none(number) or 0)
        part = item.parts.get(key)
        if part is None:
            part = item.parts[key] = PartialPart(kind)
        elif part.kind is not kind and not part.received:
            part.kind = kind
        return part

    def on_input_delta(self, payload: JsonObject, kind: str) -> None:
        text = payload.get("delta")
        if text is None:
            return
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), kind)
        if not item.ended:
            self._append_input(item, arguments_to_text(text))
            if isinstance(text, str) and item.block_index is not None:
                self._set_delta_template(text, partial(self._append_input, item))

    def on_input_done(self, payload: JsonObject, kind: str, key: str) -> None:
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), kind)
        if not item.ended:
            item.input_done = True
            if (name := string_or_none(payload.get("name"))) and kind in FUNCTION_TYPES:
                item.fragment = {"name": name, **item.fragment}
                self._begin_call(item)
            self._append_missing_input(item, payload.get(key))

    def on_shell_command(self, payload: JsonObject) -> None:
        """Read a command of a hosted shell call, for streams that do not end with the item."""
        item = self._lookup.find_or_create(None, payload.get("output_index"), "shell_call")
        if item.ended or not isinstance(payload.get("command"), str):
            return
        action = object_or_none(item.fragment.get("action")) or {}
        known = action.get("commands")
        commands = [*cast("list[object]", known if isinstance(known, list) else [])]
        number = integer_or_none(payload.get("command_index")) or 0
        if number < len(commands):
            commands[number] = payload["command"]
        else:
            commands.append(payload["command"])
        item.fragment = {**item.fragment, "action": {**action, "commands": commands}}

    def on_shell_output(self, payload: JsonObject) -> None:
        """Read the output of one command of a hosted shell call."""
        item = self._lookup.find_or_create(payload.get("item_id"), payload.get("output_index"), "shell_call_output")
        output, known = payload.get("output"), item.fragment.get("output")
        if not item.ended and isinstance(output, list):
            earlier = cast("list[object]", known if isinstance(known, list) else [])
            item.fragment = {**item.fragment, "output": [*earlier, *cast("list[object]", output)]}

    # -------------------------------------------------------------------------------------------------------- emitting

    def _emit_block_start(self, block: Text | Thinking | ToolCall) -> int:
        self._end_held()
        return self._reader.emit_block_start(block)

    def _emit_block(self, block: Block) -> Block:
        self._end_held()
        return self._reader.emit_block(block)

    def _end_held(self) -> None:
        """Emit the held items: the next block is of another item, or the response has ended."""
        if not self._held:
            return
        held, self._held = self._held, []
        context = self._context([item.fragment for item, _ in held])
        for item, ended in held:
            self._end_blocks(item, parse_reply_items([item.fragment], context), ended=ended)

    def _native(self, item: PartialItem, **parts: object) -> Native:
        return Native(self._dialect.name, {**item.fragment, **parts}, intact=False)

    def _begin_text(self, item: PartialItem, part: PartialPart) -> int:
        if part.block_index is None:
            if item.open_part is not None and not item.open_part.closed:
                self._close_part(item, item.open_part)
            item.open_part = part
            block = Text("", refusal=part.kind.part_type == "refusal", native=self._native(item, type="message"))
            part.block_index = self._emit_block_start(block)
        return part.block_index

    def _append_text(self, item: PartialItem, part: PartialPart, text: str, extras: JsonObject | None = None) -> None:
        if part.closed:
            return
        if item.kind == "message":
            index = part.block_index if part.block_index is not None else self._begin_text(item, part)
            part.received.append(text)
            self._reader.add_text(index, text, extras)
            return
        first = not part.received
        part.received.append(text)
        if item.block_index is None:
            item_id = raw_id_or_none(item.fragment.get("id"))
            identity = "natural" if item_id else "absent"
            origin = Origin(self._dialect.provider, self.model, item_id=item_id, identity=identity)
            native = self._native(item, **{part.kind.list_key: [{"type": part.kind.part_type}]})
            item.block_index = self._emit_block_start(Thinking(origin=origin, native=native))
        elif first and self._reader.text_buffer(item.block_index):
            text = _SUMMARY_SEPARATOR + text
        self._reader.add_thinking(item.block_index, text)

    def _append_missing_text(self, item: PartialItem, part: PartialPart, text: object) -> None:
        """Emit the part of the full text that was not emitted yet."""
        if not isinstance(text, str):
            return
        if len(text) <= len(part.received) and not self._reader.has_split_surrogates:
            return
        emitted = part.text()
        if len(text) > len(emitted) and text.startswith(emitted):
            self._append_text(item, part, text[len(emitted) :])

    def _close_part(self, item: PartialItem, part: PartialPart) -> None:
        """End a part when the next part of its message begins."""
        part.closed = True
        final_item = {**item.build_fields(), "content": [part.build()], "status": "completed"}
        (block, *_) = self._parse(final_item)
        self._end_text(part, block)

    def _end_text(self, part: PartialPart, block: Block) -> None:
        if part.block_index is None:
            return
        text = self._reader.finish_text(part.block_index)
        native = block.native
        is_text = isinstance(block, Text)
        self._reader.emit_block_end(
            part.block_index, Text(text, part.kind.part_type == "refusal", native if is_text else None)
        )

    def _begin_call(self, item: PartialItem) -> None:
        """Begin a call as soon as its name and id are known."""
        final_item = item.fragment
        if (
            item.call is not None
            or not string_or_none(final_item.get("name"))
            or not raw_id_or_none(final_item.get("call_id"))
        ):
            return
        (block, *_) = self._parse({**final_item, INPUT_KEYS[str(item.kind)]: ""})
        if not isinstance(block, ToolCall):
            return
        native = Native(self._dialect.name, final_item, intact=False)
        item.call = self._reader.assign_id(ToolCall(block.name, kind=block.kind, origin=block.origin, native=native))
        item.block_index = self._emit_block_start(item.call)
        if item.received_input:
            self._reader.add_input(item.block_index, item.input())

    def _append_input(self, item: PartialItem, text: str) -> None:
        if not item.received_input and item.kind == "function_call":
            # `added` had all of the arguments, which are then repeated, or their beginning.
            seed = string_or_none(item.fragment.get("arguments")) or ""
            if seed and parse_argument_text(seed)[0] is None and not text.startswith(seed):
                text = seed + text
        item.received_input.append(text)
        if item.block_index is not None:
            self._reader.add_input(item.block_index, text)

    def _append_missing_input(self, item: PartialItem, text: object) -> None:
        if text is None:
            return
        full_text = arguments_to_text(text)
        if len(full_text) <= len(item.received_input) and not self._reader.has_split_surrogates:
            return
        emitted = item.input()
        if len(full_text) > len(emitted) and full_text.startswith(emitted):
            if not item.received_input:
                item.fragment = {key: value for key, value in item.fragment.items() if key != "arguments"}
            self._append_input(item, full_text[len(emitted) :])

    # ---------------------------------------------------------------------------------------------------------- ending

    def on_item_done(self, payload: JsonObject) -> None:
        if (final_item := object_or_none(payload.get("item"))) is not None:
            item = self._lookup.find_or_create_for(final_item, payload.get("output_index"), done=True)
            if not item.ended:
                self._finish_item(item, final_item)

    def finish_all(self, output: Iterable[object]) -> None:
        """Read the output of the terminal event. Items that are already done do not change."""
        for item, final_item in self._lookup.match_output(output):
            if not item.ended:
                self._finish_item(item, final_item)

    def _finish_item(self, item: PartialItem, final_item: JsonObject) -> None:
        """End an item with its final content, and with what was emitted where that is more or different."""
        item.kind = item_type_or_none(final_item) or item.kind
        if item.kind == "message":
            final_item = self._merge_parts(item, final_item, "content")
        elif item.kind == "reasoning" and not self._covers_emitted(item, final_item):
            final_item = self._merge_parts(item, self._merge_parts(item, final_item, "summary"), "content")
        elif item.kind in FUNCTION_TYPES:
            final_item = self._merge_input(item, final_item)
        item.fragment = final_item
        self._end_item(item, final_item, ended=True)

    def _merge_input(self, item: PartialItem, final_item: JsonObject) -> JsonObject:
        key = INPUT_KEYS[str(item.kind)]
        final_input = final_item.get(key)
        self._append_missing_input(item, final_input)
        emitted = item.input()
        if not emitted or final_input == emitted:
            return final_item
        # The emitted arguments differ from the final ones.
        is_equivalent = item.kind != "custom_tool_call" and _parse_value(emitted) == _parse_value(
            arguments_to_text(final_input)
        )
        item.is_inconsistent = bool(final_input) and not is_equivalent
        return {**final_item, key: emitted}

    def _covers_emitted(self, item: PartialItem, final_item: JsonObject) -> bool:
        """Return whether the final reasoning begins with the emitted text, however it is split into parts."""
        (block,) = self._parse(final_item)
        return isinstance(block, Thinking) and (
            item.block_index is None or block.text.startswith(self._reader.text_so_far(item.block_index))
        )

    def _merge_parts(self, item: PartialItem, final_item: JsonObject, list_key: str) -> JsonObject:
        final_parts = final_item.get(list_key)
        parts = cast("list[object]", final_parts) if isinstance(final_parts, list) else []
        emitted = {number: part for (part_list, number), part in item.parts.items() if part_list == list_key}
        if not emitted:
            return final_item
        if max(emitted) >= len(parts):
            emitted = dict(enumerate(emitted[number] for number in sorted(emitted)))
        if not parts and isinstance(final_parts, str) and final_parts:
            self._append_missing_text(item, emitted[min(emitted)], final_parts)
        merged: list[object] = []
        item.parts = {key: part for key, part in item.parts.items() if key[0] != list_key}
        for number in sorted({*range(len(parts)), *emitted}):
            entry = object_or_none(parts[number]) if number < len(parts) else None
            part = emitted.get(number)
            if part is None:
                merged.append(parts[number])
                continue
            part.fragment = {**part.fragment, **(entry or {})}
            self._append_missing_text(item, part, (entry or {}).get(part.kind.text_key))
            unchanged = entry is not None and entry.get(part.kind.text_key) == part.text()
            item.parts[list_key, len(merged)] = part
            merged.append(entry if unchanged else part.build())
        return {**final_item, list_key: merged} if merged else final_item

    def end_all(self, *, ended: bool) -> None:
        """End all open items: the response is complete, or was cut off."""
        for item in self._lookup.items:
            if not item.ended:
                # OAI-RESP-22
                final_item = {key: value for key, value in item.build().items() if key != "encrypted_content"}
                if item.kind == "message":
                    final_item = self._merge_parts(item, final_item, "content")
                elif item.kind in FUNCTION_TYPES:
                    final_item = self._merge_input(item, final_item)
                if final_item.get("status") == "in_progress":
                    final_item["status"] = "completed" if ended else "incomplete"
                item.fragment = final_item
                self._end_item(item, final_item, ended=ended)
        self._end_held()

    def _context(self, items: list[JsonObject]) -> ParseContext:
        return create_parse_context(items, self.model, self._dialect, stored=self.stored)

    def _parse(self, final_item: JsonObject) -> tuple[Block, ...]:
        return parse_reply_items([final_item], self._context([final_item]))

    def _end_item(self, item: PartialItem, final_item: JsonObject, *, ended: bool) -> None:
        item.ended = True
        if item.kind in CALL_TYPES or item.kind in CALL_TYPE_BY_OUTPUT:
            self._held.append((item, ended))
            return
        blocks = self._parse(final_item)
        if item.kind == "message":
            self._end_message(item, blocks)
        elif item.kind == "reasoning" and item.block_index is not None and isinstance(blocks[0], Thinking):
            emitted, text = self._reader.finish_text(item.block_index), blocks[0].text
            if len(text) > len(emitted) and text.startswith(emitted):
                self._reader.add_thinking(item.block_index, text[len(emitted) :])
            self._reader.emit_block_end(
                item.block_index, msgspec.structs.replace(blocks[0], text=self._reader.text_so_far(item.block_index))
            )
        else:
            self._end_blocks(item, blocks, ended=ended)

    def _end_blocks(self, item: PartialItem, blocks: Iterable[Block], *, ended: bool) -> None:
        status = item.fragment.get("status")
        cut = status == "incomplete" or (self.is_truncated and status is None) or not (ended or item.input_done)
        for block in blocks:
            self._end_other(item, block, cut=cut)

    def _end_message(self, item: PartialItem, blocks: tuple[Block, ...]) -> None:
        for number, block in enumerate(blocks):
            part = item.parts.get(("content", number))
            if part is None or part.block_index is None:
                self._emit_block(block)
            elif not part.closed:
                part.closed = True
                self._end_text(part, block)
        for part in item.parts.values():
            if part.block_index is not None and not part.closed:
                part.closed = True
                self._end_text(part, Text(""))

    def _end_other(self, item: PartialItem, block: Block, *, cut: bool) -> None:
        if isinstance(block, ToolCall) and block.kind != "hosted":
            text = arguments_text(block) if item.block_index is None else self._reader.finish_text(item.block_index)
            if item.is_inconsistent or (cut and not has_whole_arguments(block, item.kind)):
                block = msgspec.structs.replace(block, arguments=None, arguments_text=text, broken=True)
        if isinstance(block, ToolCall) and item.call is not None and item.block_index is not None:
            block = msgspec.structs.replace(block, id=item.call.id, name=item.call.name)
            self._reader.emit_block_end(item.block_index, block)
        else:
            block = self._emit_block(block)
        if isinstance(block, ToolCall):
            item.emitted_calls.append(block)

    def output(self) -> list[PartialItem]:
        return self._lookup.in_order()


def _parse_value(text: str) -> object:
    return parse_argument_text(text)[0]

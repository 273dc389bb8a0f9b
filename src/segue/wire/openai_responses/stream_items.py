"""Assembles the items of a streamed response from whichever events a server sends.

By the specification an item is added, its parts receive deltas, and parts and item are done (OAI-RESP-22). Servers omit
deltas, parts, `added` or `done`. A full text in an event is compared with what was emitted: the missing rest is emitted
then, and emitted text is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import parse_argument_text, plain
from segue.wire.events import arguments_text
from segue.wire.fields import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.openai_responses.items import item_kind_or_none, parse_reply_items
from segue.wire.openai_responses.request import reading_of
from segue.wire.openai_responses.shared import ResponsesDialect
from segue.wire.openai_responses.stream_known import KnownItems
from segue.wire.openai_responses.stream_parts import INPUTS, Family, GrowingItem, GrowingPart
from segue.wire.stream_pieces import written_out
from segue.wire.stream_reader import Reader

__all__ = ["GrowingItems"]

_CALLED = frozenset({"function_call", "custom_tool_call"})
_BETWEEN = "\n\n"


class GrowingItems:
    def __init__(self, reader: Reader, dialect: ResponsesDialect) -> None:
        self._reader = reader
        self._dialect = dialect
        self._known = KnownItems()
        self._at: object = None
        self._now: tuple[GrowingItem, GrowingPart] | None = None
        self.model: str | None = None
        self.stored = True
        self.full = False
        """Whether the response reached its token limit."""

    # ---------------------------------------------------------------------------------------------------------- deltas

    def add(self, payload: JsonObject) -> None:
        """`output_item.added`: content in it may be repeated in deltas."""
        item = object_or_none(payload.get("item"))
        if item is None:
            return
        index, item_id = payload.get("output_index"), item.get("id")
        known = self._known.state_of(item, index)
        if known.fragment and item_id is not None and known.fragment.get("id") not in (None, item_id):
            # The server gives all items this index.
            known = self._known.anew(known.kind, index, item_id)
        if known.ended:
            return
        known.fragment = {**known.fragment, **item}
        if known.kind in _CALLED:
            self._begin_call(known)

    def delta(self, payload: JsonObject, family: Family) -> None:
        text = payload.get("delta")
        if not isinstance(text, str):
            return
        at = (payload.get("item_id"), payload.get("output_index"), payload.get(family.numbered), family.part)
        if at == self._at and self._now is not None:
            item, part = self._now
            if not payload.get("logprobs"):
                self._expect(text, partial(self._say, item, part))
        else:
            item = self._known.meant(at[0], at[1], family.item)
            if item.ended:
                return
            part = self._part(item, at[2], family)
            self._at, self._now = at, (item, part)
        logprobs = payload.get("logprobs")
        if logprobs and isinstance(logprobs, list):
            given = cast("list[object]", logprobs)
            given = cast("list[object]", plain(given)) if self._reader.halves else given
            part.logprobs += given
            self._say(item, part, text, {"logprobs": given})
        elif text:
            self._say(item, part, text)

    def rest(self) -> None:
        """Forget the current text: the next event is not one of its deltas."""
        self._now = None

    def _expect(self, text: str, tell: Callable[[str], object]) -> None:
        self._reader.expect("delta", text, tell)

    def text_done(self, payload: JsonObject, family: Family) -> None:
        item = self._known.meant(payload.get("item_id"), payload.get("output_index"), family.item)
        if not item.ended:
            part = self._part(item, payload.get(family.numbered), family)
            self._complete(item, part, payload.get(family.key))

    def part(self, payload: JsonObject, families: dict[object, Family], listed: str, *, done: bool) -> None:
        """`content_part.added` and `.done`, and those of summaries."""
        fragment = object_or_none(payload.get("part")) or {}
        kind = fragment.get("type")
        family = families.get(kind) if isinstance(kind, str) else None
        if family is None or family.listed != listed:
            return
        item = self._known.meant(payload.get("item_id"), payload.get("output_index"), family.item)
        if item.ended:
            return
        part = self._part(item, payload.get(family.numbered), family)
        part.fragment = {**part.fragment, **fragment}
        if done:
            self._complete(item, part, fragment.get(family.key))
        elif family.item == "message":
            self._begin_text(item, part)

    def annotate(self, payload: JsonObject, family: Family) -> None:
        item = self._known.meant(payload.get("item_id"), payload.get("output_index"), family.item)
        if (annotation := object_or_none(payload.get("annotation"))) is not None and not item.ended:
            self._part(item, payload.get(family.numbered), family).annotations.append(annotation)

    def _part(self, item: GrowingItem, number: object, family: Family) -> GrowingPart:
        key = (family.listed, integer_or_none(number) or 0)
        part = item.parts.get(key)
        if part is None:
            part = item.parts[key] = GrowingPart(family)
        elif part.family is not family and not part.pieces:
            part.family = family
        return part

    def input_delta(self, payload: JsonObject, kind: str) -> None:
        text = payload.get("delta")
        if text is None:
            return
        item = self._known.meant(payload.get("item_id"), payload.get("output_index"), kind)
        if not item.ended:
            self._say_input(item, written_out(text))
            if isinstance(text, str) and item.place is not None:
                self._expect(text, partial(self._say_input, item))

    def input_done(self, payload: JsonObject, kind: str, key: str) -> None:
        item = self._known.meant(payload.get("item_id"), payload.get("output_index"), kind)
        if not item.ended:
            item.input_done = True
            self._complete_input(item, payload.get(key))

    # -------------------------------------------------------------------------------------------------------- emitting

    def _native(self, item: GrowingItem, **parts: object) -> Native:
        return Native(self._dialect.name, {**item.fragment, **parts}, intact=False)

    def _begin_text(self, item: GrowingItem, part: GrowingPart) -> int:
        if part.place is None:
            for other in item.parts.values():
                if other.place is not None and not other.closed:
                    self._close(item, other)
            begun = Text("", refusal=part.family.part == "refusal", native=self._native(item, type="message"))
            part.place = self._reader.start(begun)
        return part.place

    def _say(self, item: GrowingItem, part: GrowingPart, text: str, beside: JsonObject | None = None) -> None:
        if part.closed:
            return
        if item.kind == "message":
            place = part.place if part.place is not None else self._begin_text(item, part)
            part.pieces.append(text)
            self._reader.text(place, text, beside)
            return
        first = not part.pieces
        part.pieces.append(text)
        if item.place is None:
            item_id = raw_id_or_none(item.fragment.get("id"))
            identity = "natural" if item_id else "absent"
            origin = Origin(self._dialect.provider, self.model, item_id=item_id, identity=identity)
            native = self._native(item, **{part.family.listed: [{"type": part.family.part}]})
            item.place = self._reader.start(Thinking(origin=origin, native=native))
        elif first and self._reader.said(item.place):
            text = _BETWEEN + text
        self._reader.thinking(item.place, text)

    def _complete(self, item: GrowingItem, part: GrowingPart, text: object) -> None:
        """Emit the part of the full text that was not emitted yet."""
        if not isinstance(text, str):
            return
        emitted = part.text()
        if len(text) > len(emitted) and text.startswith(emitted):
            self._say(item, part, text[len(emitted) :])

    def _close(self, item: GrowingItem, part: GrowingPart) -> None:
        """End a part when the next part of its message begins."""
        part.closed = True
        made = {**item.whole(), "content": [part.whole()], "status": "completed"}
        (block, *_) = self._parsed(made)
        self._end_text(part, block)

    def _end_text(self, part: GrowingPart, block: Block) -> None:
        if part.place is None:
            return
        text = self._reader.ended(part.place)
        native = block.native
        known = isinstance(block, Text)
        self._reader.end(part.place, Text(text, part.family.part == "refusal", native if known else None))

    def _begin_call(self, item: GrowingItem) -> None:
        """Begin a call as soon as its name and id are known."""
        made = item.fragment
        if item.call is not None or not string_or_none(made.get("name")) or not raw_id_or_none(made.get("call_id")):
            return
        (block, *_) = self._parsed({**made, INPUTS[str(item.kind)]: ""})
        if not isinstance(block, ToolCall):
            return
        native = Native(self._dialect.name, made, intact=False)
        item.call = self._reader.named(ToolCall(block.name, kind=block.kind, origin=block.origin, native=native))
        item.place = self._reader.start(item.call)
        if item.pieces:
            self._reader.input(item.place, item.input())

    def _say_input(self, item: GrowingItem, text: str) -> None:
        if not item.pieces and item.kind == "function_call":
            # `added` had all of the arguments, which are then repeated, or their beginning.
            seed = string_or_none(item.fragment.get("arguments")) or ""
            if seed and parse_argument_text(seed)[0] is None and not text.startswith(seed):
                text = seed + text
        item.pieces.append(text)
        if item.place is not None:
            self._reader.input(item.place, text)

    def _complete_input(self, item: GrowingItem, text: object) -> None:
        if text is None:
            return
        whole, emitted = written_out(text), item.input()
        if len(whole) > len(emitted) and whole.startswith(emitted):
            if not item.pieces:
                item.fragment = {key: value for key, value in item.fragment.items() if key != "arguments"}
            self._say_input(item, whole[len(emitted) :])

    # ---------------------------------------------------------------------------------------------------------- ending

    def done(self, payload: JsonObject) -> None:
        """`output_item.done`."""
        if (made := object_or_none(payload.get("item"))) is not None:
            item = self._known.state_of(made, payload.get("output_index"))
            if not item.ended:
                self._settle(item, made)

    def settle_all(self, output: Iterable[object]) -> None:
        """The output of the terminal event. Items that are already done do not change."""
        for item, made in self._known.matched(output):
            if not item.ended:
                self._settle(item, made)

    def _settle(self, item: GrowingItem, made: JsonObject) -> None:
        """End an item with its final content, and with what was emitted where that is more or different."""
        item.kind = item_kind_or_none(made) or item.kind
        if item.kind == "message":
            made = self._settled_parts(item, made, "content")
        elif item.kind == "reasoning" and not self._says_all(item, made):
            made = self._settled_parts(item, self._settled_parts(item, made, "summary"), "content")
        elif item.kind in _CALLED:
            made = self._settled_input(item, made)
        item.fragment = made
        self._end(item, made, ended=True)

    def _settled_input(self, item: GrowingItem, made: JsonObject) -> JsonObject:
        key = INPUTS[str(item.kind)]
        given = made.get(key)
        self._complete_input(item, given)
        emitted = item.input()
        if not emitted or given == emitted:
            return made
        # The emitted arguments differ from the final ones.
        same = item.kind != "custom_tool_call" and _value(emitted) == _value(written_out(given))
        item.torn = bool(given) and not same
        return {**made, key: emitted}

    def _says_all(self, item: GrowingItem, made: JsonObject) -> bool:
        """Whether the final reasoning begins with the emitted text, however it is split into parts."""
        (block,) = self._parsed(made)
        return isinstance(block, Thinking) and (
            item.place is None or block.text.startswith(self._reader.said(item.place))
        )

    def _settled_parts(self, item: GrowingItem, made: JsonObject, listed: str) -> JsonObject:
        given = made.get(listed)
        parts = cast("list[object]", given) if isinstance(given, list) else []
        emitted = {number: part for (at, number), part in item.parts.items() if at == listed}
        if not emitted:
            return made
        if max(emitted) >= len(parts):
            emitted = dict(enumerate(emitted[number] for number in sorted(emitted)))
        if not parts and isinstance(given, str) and given:
            self._complete(item, emitted[min(emitted)], given)
        settled: list[object] = []
        item.parts = {key: part for key, part in item.parts.items() if key[0] != listed}
        for number in sorted({*range(len(parts)), *emitted}):
            entry = object_or_none(parts[number]) if number < len(parts) else None
            part = emitted.get(number)
            if part is None:
                settled.append(parts[number])
                continue
            part.fragment = {**part.fragment, **(entry or {})}
            self._complete(item, part, (entry or {}).get(part.family.key))
            same = entry is not None and entry.get(part.family.key) == part.text()
            item.parts[listed, len(settled)] = part
            settled.append(entry if same else part.whole())
        return {**made, listed: settled} if settled else made

    def end_all(self, *, ended: bool) -> None:
        """End all open items: the response is complete, or was cut off."""
        for item in self._known.items:
            if not item.ended:
                # OAI-RESP-22
                made = {key: value for key, value in item.whole().items() if key != "encrypted_content"}
                if item.kind == "message":
                    made = self._settled_parts(item, made, "content")
                elif item.kind in _CALLED:
                    made = self._settled_input(item, made)
                if made.get("status") == "in_progress":
                    made["status"] = "completed" if ended else "incomplete"
                item.fragment = made
                self._end(item, made, ended=ended)

    def _parsed(self, made: JsonObject) -> tuple[Block, ...]:
        return parse_reply_items([made], reading_of([made], self.model, self._dialect, stored=self.stored))

    def _end(self, item: GrowingItem, made: JsonObject, *, ended: bool) -> None:
        item.ended = True
        blocks = self._parsed(made)
        if item.kind == "message":
            self._end_message(item, blocks)
        elif item.kind == "reasoning" and item.place is not None and isinstance(blocks[0], Thinking):
            emitted, text = self._reader.ended(item.place), blocks[0].text
            if len(text) > len(emitted) and text.startswith(emitted):
                self._reader.thinking(item.place, text[len(emitted) :])
            self._reader.end(item.place, msgspec.structs.replace(blocks[0], text=self._reader.said(item.place)))
        else:
            status = made.get("status")
            cut = status == "incomplete" or (self.full and status is None) or not (ended or item.input_done)
            for block in blocks:
                self._end_other(item, block, cut=cut, ended=ended)

    def _end_message(self, item: GrowingItem, blocks: tuple[Block, ...]) -> None:
        for number, block in enumerate(blocks):
            part = item.parts.get(("content", number))
            if part is None or part.place is None:
                self._reader.tell_block(block)
            elif not part.closed:
                part.closed = True
                self._end_text(part, block)
        for part in item.parts.values():
            if part.place is not None and not part.closed:
                part.closed = True
                self._end_text(part, Text(""))

    def _end_other(self, item: GrowingItem, block: Block, *, cut: bool, ended: bool) -> None:
        if isinstance(block, ToolCall) and block.kind != "hosted":
            text = arguments_text(block) if item.place is None else self._reader.ended(item.place)
            whole = block.kind != "custom" and item.kind in INPUTS and bool(object_or_none(block.arguments))
            if item.torn or (cut and not whole):
                block = msgspec.structs.replace(block, arguments=None, arguments_text=text, broken=True)
        if isinstance(block, ToolCall) and item.call is not None and item.place is not None:
            block = msgspec.structs.replace(block, id=item.call.id, name=item.call.name)
            self._reader.end(item.place, block)
        else:
            block = self._reader.tell_block(block)
        if isinstance(block, ToolCall):
            item.calls.append(block)

    def output(self) -> list[GrowingItem]:
        return self._known.in_order()


def _value(text: str) -> object:
    return parse_argument_text(text)[0]

"""Encodes the events of a streamed response: sequence numbers, items, deltas.

Deltas are frequent and differ only in text and sequence number: the common bytes are encoded once.
"""

from __future__ import annotations

from segue.canonical.json import encode_json
from segue.canonical.request import Usage
from segue.wire.json_values import JsonObject
from segue.wire.openai_responses.context import derive_id
from segue.wire.openai_responses.reply import render_usage
from segue.wire.stream.framing import encode_sse

__all__ = ["OpenItem", "ResponseWriter"]


class OpenItem:
    """An item that has not ended: its id, its fields without content, and the `parts` that are done.

    `index` is assigned when it is added.
    """

    __slots__ = ("fragment", "id", "index", "parts")

    def __init__(self, item_id: str, fragment: JsonObject) -> None:
        self.index = -1
        self.id = item_id
        self.fragment = fragment
        self.parts: list[JsonObject] = []


class ResponseWriter:
    """Each method returns the bytes that it adds to the stream. `delta_templates` are by block index."""

    def __init__(self) -> None:
        self.response: JsonObject = {}
        self.delta_templates: dict[int, tuple[bytes, bytes]] = {}
        self._output: list[JsonObject] = []
        self._item_count = 0
        self._sequence = 0

    def event(self, name: str, **fields: object) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        kind = f"response.{name}"
        return encode_sse(encode_json({"type": kind, **fields, "sequence_number": number}), kind)

    def open(self, envelope: JsonObject) -> bytes:
        self.response = envelope
        return self.event("created", response=envelope) + self.event("in_progress", response=envelope)

    def end(self, ending: JsonObject, usage: Usage | None) -> bytes:
        rendered_usage = None if usage is None else render_usage(usage)
        return self.event(
            str(ending["status"]), response={**self.response, **ending, "output": self._output, "usage": rendered_usage}
        )

    def derive_id(self, prefix: str, index: int) -> str:
        return derive_id(prefix, str(self.response.get("id")), str(index))

    def add_item(self, item: OpenItem) -> bytes:
        item.index, self._item_count = self._item_count, self._item_count + 1
        return self.event("output_item.added", output_index=item.index, item=item.fragment)

    def end_item(self, item: OpenItem, final_item: JsonObject) -> bytes:
        self._output.append(final_item)
        return self.event("output_item.done", output_index=item.index, item=final_item)

    def start_deltas(self, index: int, name: str, position: JsonObject, suffix: bytes = b"") -> None:
        """Set the event name, position and trailing fields of the deltas of this block."""
        kind = f"response.{name}"
        head = encode_sse(encode_json({"type": kind, **position})[:-1] + b',"delta":', kind)[:-2]
        self.delta_templates[index] = head, suffix

    def delta(self, index: int, text: str, suffix: bytes | None = None) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        head, trailing = self.delta_templates[index]
        return b'%b%b,%b"sequence_number":%d}\n\n' % (
            head,
            encode_json(text),
            trailing if suffix is None else suffix,
            number,
        )

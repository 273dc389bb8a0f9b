"""Encodes the events of a streamed response: sequence numbers, items, deltas.

Deltas are frequent and differ only in text and sequence number: the common bytes are encoded once.
"""

from __future__ import annotations

from segue.canonical.jsontext import write
from segue.canonical.request import Usage
from segue.wire.fields import JsonObject
from segue.wire.framing import server_sent
from segue.wire.openai_responses.reply import render_usage
from segue.wire.openai_responses.shared import made_id

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
        self.around: JsonObject = {}
        self.growing: dict[int, tuple[bytes, bytes]] = {}
        self._output: list[JsonObject] = []
        self._added = 0
        self._sequence = 0

    def event(self, name: str, **fields: object) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        kind = f"response.{name}"
        return server_sent(write({"type": kind, **fields, "sequence_number": number}), kind)

    def open(self, around: JsonObject) -> bytes:
        self.around = around
        return self.event("created", response=around) + self.event("in_progress", response=around)

    def end(self, ending: JsonObject, usage: Usage | None) -> bytes:
        rendered_usage = None if usage is None else render_usage(usage)
        return self.event(
            str(ending["status"]), response={**self.around, **ending, "output": self._output, "usage": rendered_usage}
        )

    def made_id(self, prefix: str, index: int) -> str:
        return made_id(prefix, str(self.around.get("id")), str(index))

    def add(self, item: OpenItem) -> bytes:
        item.index, self._added = self._added, self._added + 1
        return self.event("output_item.added", output_index=item.index, item=item.fragment)

    def done(self, item: OpenItem, made: JsonObject) -> bytes:
        self._output.append(made)
        return self.event("output_item.done", output_index=item.index, item=made)

    def grow(self, index: int, name: str, at: JsonObject, behind: bytes = b"") -> None:
        """Set the event name, position and trailing fields of the deltas of this block."""
        kind = f"response.{name}"
        head = server_sent(write({"type": kind, **at})[:-1] + b',"delta":', kind)[:-2]
        self.growing[index] = head, behind

    def delta(self, index: int, text: str, beside: bytes | None = None) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        head, behind = self.growing[index]
        return b'%b%b,%b"sequence_number":%d}\n\n' % (head, write(text), behind if beside is None else beside, number)

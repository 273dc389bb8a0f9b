"""What one rendering carries along: the target's ids and names, and which calls go out with an id at all.

A call and its result both have an id or neither has (GEM-11). Older models pair by position and get none; at home
each has one where it had one.
"""

from __future__ import annotations

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.models import Model
from segue.wire.base import Projection
from segue.wire.gemini.fields import JsonObject, look
from segue.wire.gemini.traits import traits_of

__all__ = ["Spelling"]


class Spelling:
    """One rendering. Calls are asked for before their results."""

    __slots__ = ("_asked", "_called", "_kept", "_new_ids", "fetch", "ids", "projection", "report", "spell", "traits")

    def __init__(self, projection: Projection, model: Model, *, new_ids: bool = False) -> None:
        self.projection = projection
        self.ids = projection.ids
        self.spell = projection.names.render
        self.report = projection.report
        self.fetch = projection.fetch
        self.traits = traits_of(model)
        self._new_ids = new_ids
        self._asked: dict[str, tuple[str | None, str]] = {}
        self._called: dict[str, str] = {}
        self._kept: set[str] = set()

    def call(self, call: ToolCall, own: JsonObject | None) -> tuple[str | None, str]:
        """The id of a call, if it has one, and its name. `own` is what it stood as at home."""
        stood = own is not None and not look(own, "id")
        said = self.traits.ids or own is not None
        bare = stood and not (self._new_ids and self.traits.ids)
        made = self.ids.render(call.id) if said and not bare else None
        if own is not None and made == (look(own, "id") or None):
            self._kept.add(call.id)
        self._called[call.id] = call.name
        self._asked[call.id] = made, self.spell(call.name)
        return self._asked[call.id]

    def response(self, response: ToolResponse, own: JsonObject | None) -> tuple[str | None, str]:
        """The same of its result (GEM-13). A call that lies with the provider is known by what the result says."""
        call_id, name = self._asked.get(response.call_id) or (None, self.spell(response.name or ""))
        stood = look(own, "name") if own is not None else None
        if stood and stood != self._called.get(response.call_id, stood):
            told = f"the result named {stood!r} has the name of its call"
            self.report.add("name", told, call_id=response.call_id, subject=stood)
        if own is not None and (response.call_id in self._kept or response.call_id not in self._asked):
            return look(own, "id") or None, name
        return call_id, name

"""The render context: projected ids and names, and which calls are sent with an id.

A call and its result both have an id or neither has one (GEM-11). Older models pair by position and get none; same-API
calls keep one if they had one.
"""

from __future__ import annotations

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.models import Model
from segue.wire.base import Projection
from segue.wire.gemini.fields import JsonObject, look
from segue.wire.gemini.traits import traits_of

__all__ = ["Spelling"]


class Spelling:
    """State of one rendering. `project_call` must be called before `project_response` of its result."""

    __slots__ = ("_asked", "_called", "_kept", "_new_ids", "fetch", "ids", "projection", "report", "spell", "traits")

    def __init__(self, render_context: Projection, model: Model, *, new_ids: bool = False) -> None:
        self.projection = render_context
        self.ids = render_context.ids
        self.spell = render_context.names.render
        self.report = render_context.report
        self.fetch = render_context.fetch
        self.traits = traits_of(model)
        self._new_ids = new_ids
        self._asked: dict[str, tuple[str | None, str]] = {}
        self._called: dict[str, str] = {}
        self._kept: set[str] = set()

    def call(self, call: ToolCall, own: JsonObject | None) -> tuple[str | None, str]:
        """The projected id (or None) and name of a call. `own` is its original fragment, if Gemini made it."""
        had_no_id = own is not None and not look(own, "id")
        writes_id = self.traits.ids or own is not None
        bare = had_no_id and not (self._new_ids and self.traits.ids)
        made = self.ids.render(call.id) if writes_id and not bare else None
        if own is not None and made == (look(own, "id") or None):
            self._kept.add(call.id)
        self._called[call.id] = call.name
        self._asked[call.id] = made, self.spell(call.name)
        return self._asked[call.id]

    def response(self, response: ToolResponse, own: JsonObject | None) -> tuple[str | None, str]:
        """The same for a result (GEM-13). Without its call in the body, the result's own id and name are used."""
        call_id, name = self._asked.get(response.call_id) or (None, self.spell(response.name or ""))
        given = look(own, "name") if own is not None else None
        if given and given != self._called.get(response.call_id, given):
            message = f"renamed the function response {given!r}: its name must match its call"
            self.report.add("name", message, call_id=response.call_id, subject=given)
        if own is not None and (response.call_id in self._kept or response.call_id not in self._asked):
            return look(own, "id") or None, name
        return call_id, name

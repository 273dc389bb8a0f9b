"""The render context of Gemini: projected ids and names, and which calls are sent with an id.

A call and its result both have an id or neither has one (GEM-11). Older models pair by position and get no ids, except
for same-API calls that had one.
"""

from __future__ import annotations

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.models import Model
from segue.wire.base import RenderContext
from segue.wire.gemini.capabilities import capabilities_of
from segue.wire.gemini.fields import JsonObject, get_field

__all__ = ["GeminiContext"]


class GeminiContext:
    """State of one rendering. `project_call` must be called before `project_response` of its result."""

    __slots__ = (
        "_call_names",
        "_new_ids",
        "_projected",
        "_same_ids",
        "capabilities",
        "fetch",
        "ids",
        "project_name",
        "render_context",
        "report",
    )

    def __init__(self, render_context: RenderContext, model: Model, *, new_ids: bool = False) -> None:
        self.render_context = render_context
        self.ids = render_context.ids
        self.project_name = render_context.names.render
        self.report = render_context.report
        self.fetch = render_context.fetch
        self.capabilities = capabilities_of(model)
        self._new_ids = new_ids
        self._projected: dict[str, tuple[str | None, str]] = {}
        self._call_names: dict[str, str] = {}
        self._same_ids: set[str] = set()

    def project_call(self, call: ToolCall, original: JsonObject | None) -> tuple[str | None, str]:
        """The projected id (or None) and name of a call. `original` is its fragment, if it came from Gemini."""
        had_no_id = original is not None and not get_field(original, "id")
        writes_id = self.capabilities.call_ids or original is not None
        stays_without_id = had_no_id and not (self._new_ids and self.capabilities.call_ids)
        projected_id = self.ids.render(call.id) if writes_id and not stays_without_id else None
        if original is not None and projected_id == (get_field(original, "id") or None):
            self._same_ids.add(call.id)
        self._call_names[call.id] = call.name
        self._projected[call.id] = projected_id, self.project_name(call.name)
        return self._projected[call.id]

    def project_response(self, response: ToolResponse, original: JsonObject | None) -> tuple[str | None, str]:
        """The projected id (or None) and name of a result (GEM-13); its own where its call is not in the body."""
        call_id, name = self._projected.get(response.call_id) or (None, self.project_name(response.name or ""))
        original_name = get_field(original, "name") if original is not None else None
        if original_name and original_name != self._call_names.get(response.call_id, original_name):
            message = f"function response {original_name!r} renamed: its name must match its call"
            self.report.add("name", message, call_id=response.call_id, subject=original_name)
        if original is not None and (response.call_id in self._same_ids or response.call_id not in self._projected):
            return get_field(original, "id") or None, name
        return call_id, name

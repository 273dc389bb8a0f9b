"""A Gemini body parsed for its rules: contents, their parts, declarations, and the model's generation.

A key may be camelCase or snake_case, and null means absent. Responses to the calls of one reply are in one content
(GEM-01: not several). A reply may be split into several consecutive model contents: the vendor's own client appends
streamed replies like this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from segue.conformance.gemini.fields import DATA_FIELDS, find_unknown_part_key, iter_entries, to_camel, to_snake
from segue.conformance.values import is_list, is_object, text_or_empty
from segue.models import Model


class Node(msgspec.Struct, frozen=True, gc=False):
    """A JSON object with its path: `data` by field name without nulls, `keys` maps a name to the body's key."""

    path: str
    data: Mapping[str, object]
    keys: Mapping[str, str]

    def get(self, name: str) -> object:
        return self.data.get(name)

    def text(self, name: str) -> str:
        """Return the string in this field, `""` if there is none."""
        return text_or_empty(self.data.get(name))

    def path_of(self, name: str) -> str:
        """Return the path of this field with the body's own key."""
        key = self.keys.get(name) or to_camel(name)
        return f"{self.path}.{key}" if self.path else key

    def child(self, name: str) -> Node:
        """Return the object in this field; an empty one if there is none."""
        return make_node(self.data.get(name), self.path_of(name))

    def children(self, name: str) -> Iterator[Node]:
        """Yield the objects in this list field."""
        return (
            make_node(entry, path)
            for path, entry in iter_entries(self.data.get(name), self.path_of(name))
            if is_object(entry)
        )


def make_node(value: object, path: str) -> Node:
    """Return the value as a node; empty if it is not an object."""
    data: dict[str, object] = {}
    keys: dict[str, str] = {}
    for key, entry in value.items() if is_object(value) else ():
        if entry is not None:
            name = to_snake(key)
            data[name] = entry
            keys[name] = key
    return Node(path, data, keys)


class Part(msgspec.Struct, frozen=True, gc=False):
    """A part; `members` are its data fields, exactly one if it is valid."""

    node: Node
    role: str
    members: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.node.path

    @property
    def signature(self) -> str:
        return self.node.text("thought_signature")

    def has_member(self, *members: str) -> bool:
        return any(member in members for member in self.members)


class Content(msgspec.Struct, frozen=True, gc=False):
    """A content. `role` is `""` if absent, which means user."""

    node: Node
    role: str
    parts: Sequence[Part]
    has_no_parts: bool
    calls: Sequence[Node]
    responses: Sequence[Node]

    @property
    def path(self) -> str:
        return self.node.path

    @property
    def is_model(self) -> bool:
        return self.role == "model"


class GeminiRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    body: Mapping[str, object]
    node: Node
    model: Model
    contents: Sequence[Content]
    merged_contents: Sequence[Content]
    """The contents; consecutive model contents are merged."""
    system: Content | None
    tools: Sequence[Node]
    declarations: Sequence[Node]

    def parts(self) -> Iterator[Part]:
        """Yield all parts of all contents, in the order of the body."""
        for content in self.contents:
            yield from content.parts

    @property
    def has_cached_content(self) -> bool:
        """Whether cached_content holds earlier contents and possibly the tools."""
        return bool(self.node.text("cached_content"))

    @property
    def is_before_gemini_3(self) -> bool:
        """Whether the model is known to be older than Gemini 3."""
        return self.model.family == "gemini" and bool(self.model.version) and not self.model.at_least(3)


def _parse_part(value: object, path: str, role: str) -> Part:
    part = make_node(value, path)
    newer = find_unknown_part_key(value) if is_object(value) else None
    return Part(
        part, role, tuple(member for member in DATA_FIELDS if member in part.data) or ((newer,) if newer else ())
    )


def _parse_content(value: object, path: str) -> Content:
    content = make_node(value, path)
    role = content.text("role")
    entries = content.get("parts")
    # An entry that is neither an object nor null has a wrong type (GEM-14); it is not an empty part.
    parts = [
        _parse_part(entry, place, role)
        for place, entry in iter_entries(entries, content.path_of("parts"))
        if is_object(entry) or entry is None
    ]
    calls = [part.node.child("function_call") for part in parts if is_object(part.node.get("function_call"))]
    responses = [
        part.node.child("function_response") for part in parts if is_object(part.node.get("function_response"))
    ]
    has_no_parts = entries is None or (is_list(entries) and not entries)
    return Content(content, role, parts, has_no_parts, calls, responses)


def _merge_model_contents(contents: Sequence[Content]) -> Iterator[Content]:
    for by_model, run in groupby(contents, key=lambda content: content.is_model and not content.responses):
        merged = list(run)
        if not by_model or len(merged) == 1:
            yield from merged
            continue
        # Problems point to the first content with calls.
        first = next((content for content in merged if content.calls), merged[0])
        yield msgspec.structs.replace(
            first,
            parts=[part for content in merged for part in content.parts],
            calls=[call for content in merged for call in content.calls],
        )


def parse_request(body: Mapping[str, object], model: Model) -> GeminiRequest:
    """Parse a body. Any object is accepted; the rules report what is missing."""
    request = make_node(body, "")
    contents = [
        _parse_content(entry, path)
        for path, entry in iter_entries(request.get("contents"), request.path_of("contents"))
        if is_object(entry) or entry is None
    ]
    instruction = request.get("system_instruction")
    system = _parse_content(instruction, request.path_of("system_instruction")) if is_object(instruction) else None
    tools = list(request.children("tools"))
    declarations = [declared for tool in tools for declared in tool.children("function_declarations")]
    return GeminiRequest(
        body, request, model, contents, list(_merge_model_contents(contents)), system, tools, declarations
    )

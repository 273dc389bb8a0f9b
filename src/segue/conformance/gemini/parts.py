"""The contents and parts of Gemini bodies: GEM-09, GEM-10, GEM-14, GEM-24 and GEM-27."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.gemini.request import Content, GeminiRequest
from segue.conformance.gemini.shape import DATA, FIELDS, snake, walk
from segue.conformance.rule import Finding, Table
from segue.conformance.values import is_list, quoted

__all__ = ["table"]

table: Table[GeminiRequest] = Table()

# Declarations are checked by GEM-23.
_DECLARING = frozenset({"tools", "tool_config"})
_SERVER_SIDE = {"tool_call": "tool_response", "executable_code": "code_execution_result"}
_NEWER = ("tool_call", "tool_response")
_BUILT_IN = ("google_search", "url_context", "code_execution", "file_search", "google_maps")


# GEM-09
@table.rule("GEM-09")
def parts_not_empty(request: GeminiRequest) -> Iterator[Finding]:
    """There is at least one content, and each has parts."""
    contents = request.node.get("contents")
    if contents is None or (is_list(contents) and not contents):
        yield Finding(request.node.at("contents"), "contents is not specified")
    for content in request.contents:
        if content.blank:
            yield Finding(content.node.at("parts"), "contents.parts must not be empty.")


def _with_system(request: GeminiRequest) -> Iterator[Content]:
    yield from request.contents
    if request.system is not None:
        yield request.system


# GEM-10
@table.rule("GEM-10")
def one_data_member_per_part(request: GeminiRequest) -> Iterator[Finding]:
    """A part has exactly one data member; empty text is valid only with a signature."""
    for content in _with_system(request):
        for part in content.parts:
            if not part.members:
                yield Finding(part.path, "required oneof field 'data' must have one initialized field")
            elif len(part.members) > 1:
                first, second, *_ = part.members
                yield Finding(part.path, f"oneof field 'data' is already set: {first} and {second}")
            elif part.node.get("text") == "" and not part.signature:
                yield Finding(part.node.at("text"), "the text is empty; some endpoints treat the part as empty", "risk")


# GEM-14
@table.rule("GEM-14")
def payload_fields_known(request: GeminiRequest) -> Iterator[Finding]:
    """Every field is known to the API and has the right type: args is an object, there is no is_error."""
    rest = {key: value for key, value in request.body.items() if snake(key) not in _DECLARING}
    yield from walk(rest, "request", "")


# GEM-24
@table.rule("GEM-24")
def server_side_by_generation(request: GeminiRequest) -> Iterator[Finding]:
    """Models before Gemini 3 support neither toolCall and toolResponse parts nor their setting."""
    if not request.is_older:
        return
    for part in request.parts():
        if part.has(*_NEWER):
            yield Finding(part.path, f"{part.members[0]} parts need Gemini 3 or newer")
    config = request.node.child("tool_config")
    if config.get("include_server_side_tool_invocations") is True:
        where = config.at("include_server_side_tool_invocations")
        yield Finding(where, "Tool call context circulation is not enabled for models before Gemini 3")


# GEM-24
@table.rule("GEM-24", severity="risk")
def server_side_echoed(request: GeminiRequest) -> Iterator[Finding]:
    """Parts of hosted tools are in model contents, and a response has the id of a call before it."""
    seen: dict[str, set[str]] = {answer: set() for answer in _SERVER_SIDE.values()}
    for part in request.parts():
        for member in part.members:
            if member not in _SERVER_SIDE and member not in seen:
                continue
            data = part.node.child(member)
            known = data.text("id")
            if part.role != "model":
                yield Finding(part.path, f"{member} outside a model content; send it back where it was returned")
            if member in _SERVER_SIDE:
                seen[_SERVER_SIDE[member]].add(known)
            elif known and known not in seen[member]:
                yield Finding(data.at("id"), f"no part before it has the id {quoted(known)}; unknown ids are rejected")


# GEM-24
@table.rule("GEM-24", severity="risk")
def built_in_beside_functions(request: GeminiRequest) -> Iterator[Finding]:
    """Gemini 3 accepts built-in tools with functions only with includeServerSideToolInvocations (not on Vertex)."""
    if request.model.family != "gemini" or not request.model.at_least(3) or not request.declarations:
        return
    config = request.node.child("tool_config")
    if config.get("include_server_side_tool_invocations") is True:
        return
    for tool in request.tools:
        for name in _BUILT_IN:
            if name in tool.data:
                reason = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools"
                yield Finding(tool.at(name), f"{reason} with Function calling.")


# GEM-27
@table.rule("GEM-27")
def media_by_generation(request: GeminiRequest) -> Iterator[Finding]:
    """functionResponse.parts needs Gemini 3 or newer, or a computer-use model."""
    if not request.is_older or "computer-use" in request.model.name:
        return
    for content in request.contents:
        for response in content.responses:
            if response.get("parts"):
                yield Finding(response.at("parts"), "models before Gemini 3 do not support media in a functionResponse")


# GEM-10
@table.rule("GEM-10")
def response_media_present(request: GeminiRequest) -> Iterator[Finding]:
    """A part of a functionResponse has exactly one of inlineData and fileData."""
    for content in request.contents:
        for response in content.responses:
            for part in response.children("parts"):
                members = [name for name in FIELDS["function_response_part"] if name in DATA and name in part.data]
                if len(members) != 1:
                    yield Finding(part.path, "required oneof field 'data' must have one initialized field")

"""The contents and parts of Gemini bodies: GEM-09, GEM-10, GEM-14, GEM-24 and GEM-27."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from segue.conformance.gemini.fields import check_fields, message, to_snake
from segue.conformance.gemini.request import Content, GeminiRequest, Part
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import is_list, quote

table: RuleTable[GeminiRequest] = RuleTable()

# Declarations are checked by GEM-23.
_DECLARATION_KEYS = frozenset({"tools", "tool_config"})
_SERVER_SIDE = {"tool_call": "tool_response", "executable_code": "code_execution_result"}
_MEDIA = ("inline_data", "file_data")
_NEWER = ("tool_call", "tool_response")
_BUILT_IN = ("google_search", "url_context", "code_execution", "file_search", "google_maps")


@table.rule("GEM-09")
def parts_not_empty(request: GeminiRequest) -> Iterator[Problem]:
    """There is at least one content, and each has parts."""
    contents = request.node.get("contents")
    if contents is None or (is_list(contents) and not contents):
        yield Problem(request.node.path_of("contents"), "contents is not specified")
    for content in request.contents:
        if content.has_no_parts:
            yield Problem(content.node.path_of("parts"), "contents.parts must not be empty.")


def _contents_with_system(request: GeminiRequest) -> Iterator[Content]:
    yield from request.contents
    if request.system is not None:
        yield request.system


@table.rule("GEM-10")
def one_data_member_per_part(request: GeminiRequest) -> Iterator[Problem]:
    """A part has exactly one data member, or is the videoMetadata of the media before it.

    Empty text is valid only with a signature.
    """
    for content in _contents_with_system(request):
        for before, part in pairwise([None, *content.parts]):
            if part is None or _describes_video(before, part):
                continue
            if not part.members:
                # A setting of a video that is not directly before it.
                severity: Severity | None = "risk" if list(part.node.data) == ["video_metadata"] else None
                yield Problem(part.path, "required oneof field 'data' must have one initialized field", severity)
            elif len(part.members) > 1:
                first, second, *_ = part.members
                yield Problem(part.path, f"oneof field 'data' is already set: {first} and {second}")
            elif part.node.get("text") == "" and not part.signature:
                yield Problem(
                    part.node.path_of("text"), "the text is empty; some endpoints treat the part as empty", "risk"
                )


def _describes_video(before: Part | None, part: Part) -> bool:
    """Return whether the part is only the videoMetadata of the media in the part before it."""
    return before is not None and before.has_member(*_MEDIA) and list(part.node.data) == ["video_metadata"]


@table.rule("GEM-14")
def payload_fields_known(request: GeminiRequest) -> Iterator[Problem]:
    """The API has every field of the body, and each has the right type: args is an object, there is no is_error."""
    rest = {key: value for key, value in request.body.items() if to_snake(key) not in _DECLARATION_KEYS}
    yield from check_fields(rest, message("GenerateContentRequest"), "")


@table.rule("GEM-24")
def server_side_by_generation(request: GeminiRequest) -> Iterator[Problem]:
    """Models before Gemini 3 support neither toolCall and toolResponse parts nor their setting."""
    if not request.is_before_gemini_3:
        return
    for part in request.parts():
        if part.has_member(*_NEWER):
            yield Problem(part.path, f"{part.members[0]} parts need Gemini 3 or newer")
    config = request.node.child("tool_config")
    if config.get("include_server_side_tool_invocations") is True:
        where = config.path_of("include_server_side_tool_invocations")
        yield Problem(where, "Tool call context circulation is not enabled for models before Gemini 3")


@table.rule("GEM-24", severity="risk")
def server_side_echoed(request: GeminiRequest) -> Iterator[Problem]:
    """Parts of hosted tools are in model contents, and a response has the id of a call before it."""
    call_ids: dict[str, set[str]] = {response: set() for response in _SERVER_SIDE.values()}
    for part in request.parts():
        for member in part.members:
            if member not in _SERVER_SIDE and member not in call_ids:
                continue
            data = part.node.child(member)
            part_id = data.text("id")
            if part.role != "model":
                yield Problem(part.path, f"{member} outside a model content; send it back where it was returned")
            if member in _SERVER_SIDE:
                call_ids[_SERVER_SIDE[member]].add(part_id)
            elif part_id and part_id not in call_ids[member]:
                yield Problem(
                    data.path_of("id"), f"no part before this one has the id {quote(part_id)}; unknown ids are rejected"
                )


@table.rule("GEM-24", severity="risk")
def built_in_beside_functions(request: GeminiRequest) -> Iterator[Problem]:
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
                yield Problem(tool.path_of(name), f"{reason} with Function calling.")


@table.rule("GEM-27")
def media_by_generation(request: GeminiRequest) -> Iterator[Problem]:
    """functionResponse.parts needs Gemini 3 or newer, or a computer-use model."""
    if not request.is_before_gemini_3 or "computer-use" in request.model.name:
        return
    for content in request.contents:
        for response in content.responses:
            if response.get("parts"):
                yield Problem(
                    response.path_of("parts"), "models before Gemini 3 do not support media in a functionResponse"
                )


@table.rule("GEM-10")
def response_media_present(request: GeminiRequest) -> Iterator[Problem]:
    """A part of a functionResponse has exactly one of inlineData and fileData."""
    for content in request.contents:
        for response in content.responses:
            for part in response.children("parts"):
                members = [name for name in ("inline_data", "file_data") if name in part.data]
                if len(members) != 1:
                    yield Problem(part.path, "required oneof field 'data' must have one initialized field")

"""The order and roles of contents, function calls and responses: GEM-01 to GEM-08, GEM-11 to GEM-13, GEM-27, GEM-28."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, zip_longest

from segue.conformance.gemini.request import Content, GeminiRequest, Node
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import is_object, quote, type_name

table: RuleTable[GeminiRequest] = RuleTable()

_ROLES = frozenset({"user", "model", ""})
_SYSTEM = frozenset({"system", "developer"})
_MEDIA = ("inline_data", "file_data")


def _call_response_pairs(request: GeminiRequest) -> Iterator[tuple[Content, Content]]:
    """Yield contents with calls and the next content, if that has as many responses."""
    for content, following in pairwise(request.merged_contents):
        if content.calls and len(following.responses) == len(content.calls):
            yield content, following


@table.rule("GEM-01")
def responses_counted(request: GeminiRequest) -> Iterator[Problem]:
    """The content after one with N functionCall parts has exactly N functionResponse parts."""
    for content, following in zip_longest(request.merged_contents, request.merged_contents[1:]):
        if not content.calls or (following is None and content.is_model):
            # GEM-05 and GEM-06 cover a model content at the end.
            continue
        response_count = len(following.responses) if following else 0
        if response_count != len(content.calls):
            reason = "the number of function response parts must be equal to the number of function call parts"
            seen = f"{len(content.calls)} functionCall here and {response_count} functionResponse in the next content"
            yield Problem(content.path, f"{reason}: {seen}")


@table.rule("GEM-02")
def calls_follow_user(request: GeminiRequest) -> Iterator[Problem]:
    """A content with functionCall parts comes directly after a user content or one with functionResponse parts.

    Gemini 3 also accepts one directly after another content with functionCall parts. Behind one without, it is a risk:
    Google's own SDK sends the pieces of a streamed reply in this form.
    """
    reason = "function call turn must come immediately after a user turn or after a function response turn"
    is_newer = request.model.family == "gemini" and request.model.at_least(3)
    for before, content in pairwise([None, *request.contents]):
        if content is None or not content.calls or not content.is_model:
            continue
        if before is None:
            if not request.has_cached_content:
                yield Problem(content.path, f"{reason}; it is the first content")
        elif before.is_model and not before.responses:
            if not before.calls:
                yield Problem(content.path, f"{reason}; a model content without calls is before it", "risk")
            elif not is_newer:
                yield Problem(content.path, f"{reason}; the calls of this reply begin in {before.path}", "risk")


@table.rule("GEM-03")
def responses_follow_calls(request: GeminiRequest) -> Iterator[Problem]:
    """A content with functionResponse parts comes directly after the content with their functionCall parts."""
    # The number of responses missing from a content whose responses are split; GEM-01 has reported it.
    missing = 0
    before: Content | None = None
    for content in request.merged_contents:
        response_count = len(content.responses)
        if before is not None and before.calls:
            missing = len(before.calls) - response_count if response_count else 0
        elif response_count and missing >= response_count:
            missing -= response_count
        elif response_count and not (before is None and request.has_cached_content):
            reason = "function response turn must come immediately after a function call turn"
            yield Problem(content.path, f"{reason}; none is directly before it")
            missing = 0
        else:
            missing = 0
        before = content


@table.rule("GEM-04")
def responses_alone(request: GeminiRequest) -> Iterator[Problem]:
    """A content with functionResponse parts has no other parts."""
    for content in request.contents:
        if content.responses:
            for part in content.parts:
                if part.members and not part.has_member("function_response", *_MEDIA):
                    seen = f"{part.members[0]} next to functionResponse parts; put it into a user content after them"
                    yield Problem(part.path, seen)


@table.rule("GEM-27")
def media_not_beside_response(request: GeminiRequest) -> Iterator[Problem]:
    """Media of a result is inside the functionResponse (Gemini 3) or in a later content, not next to it."""
    for content in request.contents:
        if content.responses:
            for part in content.parts:
                if part.has_member(*_MEDIA) and not part.has_member("function_response"):
                    yield Problem(
                        part.path, f"{part.members[0]} next to functionResponse parts is counted as another response"
                    )


@table.rule("GEM-05")
def user_comes_last(request: GeminiRequest) -> Iterator[Problem]:
    """A request of several contents ends with a user role or a function response."""
    if len(request.contents) > 1:
        last = request.contents[-1]
        if last.is_model and not last.responses:
            yield Problem(last.path, "multiturn requests must end with a user role or a function response")


@table.rule("GEM-06")
def single_is_user(request: GeminiRequest) -> Iterator[Problem]:
    """The only content of a request is the user's or has no role."""
    if len(request.contents) == 1 and request.contents[0].is_model and not request.contents[0].responses:
        seen = "single turn requests must end with a user role, or the role field is empty"
        yield Problem(request.contents[0].node.path_of("role"), seen)


@table.rule("GEM-07")
def roles_known(request: GeminiRequest) -> Iterator[Problem]:
    """Roles are user and model; `function` is a legacy role for function responses."""
    for content in request.contents:
        where = content.node.path_of("role")
        if content.role == "function":
            yield Problem(where, "the role 'function' is for older endpoints; use user for functionResponse", "risk")
        elif content.role not in _ROLES and content.role not in _SYSTEM:
            yield Problem(where, f"Please use a valid role: user, model. It is {quote(content.role)}")
        elif content.node.get("role") in (None, "") and len(request.contents) > 1:
            yield Problem(where, "no role in a body with several contents; Vertex rejects it", "risk")


@table.rule("GEM-07", severity="risk")
def parts_match_role(request: GeminiRequest) -> Iterator[Problem]:
    """A functionCall has the role model, a functionResponse the role user."""
    for part in request.parts():
        if part.role == "model" and part.has_member("function_response"):
            yield Problem(part.path, "a functionResponse in a model content; use the role user")
        elif part.role != "model" and part.has_member("function_call"):
            yield Problem(part.path, "a functionCall outside a model content")


@table.rule("GEM-28")
def system_not_in_contents(request: GeminiRequest) -> Iterator[Problem]:
    """The system prompt is text in systemInstruction, not a content."""
    for content in request.contents:
        if content.role in _SYSTEM:
            seen = f"Please use a valid role: user, model. Text of {quote(content.role)} belongs in systemInstruction"
            yield Problem(content.node.path_of("role"), seen)
    for part in request.system.parts if request.system else ():
        if part.members and not part.has_member("text"):
            yield Problem(
                part.path, f"{part.members[0]} in systemInstruction, which is documented as text only", "risk"
            )


@table.rule("GEM-08", severity="risk")
def roles_alternate(request: GeminiRequest) -> Iterator[Problem]:
    """Two consecutive contents do not have the same role, except function responses and user text."""
    for before, content in pairwise(request.contents):
        # GEM-01 to GEM-03 cover calls and responses.
        tools = before.calls or before.responses or content.calls or content.responses
        if not tools and (before.role or "user") == (content.role or "user"):
            yield Problem(content.path, f"two {content.role or 'user'} contents in a row; some endpoints reject it")


@table.rule("GEM-11", severity="risk")
def ids_on_both(request: GeminiRequest) -> Iterator[Problem]:
    """Either both the call and its response have an id, or neither has."""
    for content, following in _call_response_pairs(request):
        for call, response in zip(content.calls, following.responses, strict=True):
            if bool(call.text("id")) is not bool(response.text("id")):
                with_id, without_id = ("functionCall", "response") if call.text("id") else ("functionResponse", "call")
                yield Problem(response.path_of("id"), f"the {with_id} has an id and its {without_id} has none")


@table.rule("GEM-12", severity="risk")
def ids_equal(request: GeminiRequest) -> Iterator[Problem]:
    """If both have an id, the response has the id of the call at its position."""
    for content, following in _call_response_pairs(request):
        for call, response in zip(content.calls, following.responses, strict=True):
            call_id, response_id = call.text("id"), response.text("id")
            if call_id and response_id and call_id != response_id:
                ids = f"functionResponse.id {quote(response_id)} does not match functionCall.id {quote(call_id)}"
                seen = f"{ids} at {call.path}"
                yield Problem(response.path_of("id"), seen)


@table.rule("GEM-12", severity="risk")
def ids_unique(request: GeminiRequest) -> Iterator[Problem]:
    """No two calls have the same id; gateways that compare ids pair the responses wrongly."""
    first: dict[str, str] = {}
    for content in request.contents:
        for call in content.calls:
            name = call.text("id")
            if name and first.setdefault(name, call.path) != call.path:
                yield Problem(call.path_of("id"), f"functionCall.id {quote(name)} is already that of {first[name]}")


@table.rule("GEM-13")
def response_has_name(request: GeminiRequest) -> Iterator[Problem]:
    """A functionResponse has a name and a response object."""
    for content in request.contents:
        for response in content.responses:
            yield from _check_response(response)


def _check_response(response: Node) -> Iterator[Problem]:
    if response.get("name") in (None, ""):
        yield Problem(response.path_of("name"), "function_response.name: Name cannot be empty.")
    value = response.get("response")
    if value is None:
        yield Problem(response.path_of("response"), "response is missing; it is documented as required", "risk")
    elif not is_object(value):
        yield Problem(response.path_of("response"), f"Invalid value (google.protobuf.Struct), {type_name(value)}")


@table.rule("GEM-13")
def response_name_matches_call(request: GeminiRequest) -> Iterator[Problem]:
    """A functionResponse has the name of its call: the one with the same id, else at the same position."""
    for content, following in _call_response_pairs(request):
        called_names = {call.text("name") for call in content.calls}
        by_id = {call.text("id"): call.text("name") for call in content.calls if call.text("id")}
        for call, response in zip(content.calls, following.responses, strict=True):
            name = response.text("name")
            called = by_id.get(response.text("id"), call.text("name"))
            if name and called and name != called:
                # Gemini may still pair by name if the order differs.
                severity: Severity = "risk" if name in called_names else "reject"
                seen = f"the response has the name {quote(name)}; its call at {call.path} has the name {quote(called)}"
                yield Problem(response.path_of("name"), seen, severity)

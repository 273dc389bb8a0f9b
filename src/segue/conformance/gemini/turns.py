"""The order and roles of contents, calls with their responses: GEM-01 to GEM-08, GEM-11 to GEM-13, GEM-27, GEM-28."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from segue.conformance.gemini.request import Content, GeminiRequest, Node
from segue.conformance.rule import Finding, Severity, Table
from segue.conformance.values import is_object, kind, listed, quoted

__all__ = ["table"]

table: Table[GeminiRequest] = Table()

_ROLES = frozenset({"user", "model", ""})
_SYSTEM = frozenset({"system", "developer"})
_MEDIA = ("inline_data", "file_data")


def _rounds(request: GeminiRequest) -> Iterator[tuple[Content, Content]]:
    """Call turns with a response turn of as many parts right after them."""
    for content, following in pairwise(request.turns):
        if content.calls and len(following.responses) == len(content.calls):
            yield content, following


# GEM-01
@table.rule("GEM-01")
def responses_counted(request: GeminiRequest) -> Iterator[Finding]:
    """The content right after one with N functionCall parts holds exactly N functionResponse parts."""
    for content, following in zip_longest(request.turns, request.turns[1:]):
        if not content.calls or (following is None and content.is_model):
            # A model content at the end is for GEM-05 and GEM-06.
            continue
        found = len(following.responses) if following else 0
        if found != len(content.calls):
            says = "the number of function response parts must be equal to the number of function call parts"
            seen = f"{len(content.calls)} functionCall here and {found} functionResponse in the next content"
            yield Finding(content.path, f"{says}: {seen}")


# GEM-02
@table.rule("GEM-02")
def calls_follow_user(request: GeminiRequest) -> Iterator[Finding]:
    """A functionCall turn comes immediately after a user turn or a functionResponse turn."""
    before: Content | None = None
    for content in request.contents:
        if content.calls and content.is_model:
            says = "function call turn must come immediately after a user turn or after a function response turn"
            if before is None and not request.has_cache:
                yield Finding(content.path, f"{says}; it is the first content")
            elif before is not None and before.is_model and not before.calls and not before.responses:
                # The vendor's own client sends streamed replies so; other endpoints were seen to refuse it (GEM-08).
                yield Finding(content.path, f"{says}; a model content stands before it", "risk")
        before = content


# GEM-03
@table.rule("GEM-03")
def responses_follow_calls(request: GeminiRequest) -> Iterator[Finding]:
    """A functionResponse turn comes immediately after its functionCall turn."""
    # How many responses a split response turn still lacks: GEM-01 has reported it as a whole.
    missing = 0
    before: Content | None = None
    for content in request.turns:
        found = len(content.responses)
        if before is not None and before.calls:
            missing = len(before.calls) - found if found else 0
        elif found and missing >= found:
            missing -= found
        elif found and not (before is None and request.has_cache):
            says = "function response turn must come immediately after a function call turn"
            yield Finding(content.path, f"{says}; none stands right before it")
            missing = 0
        else:
            missing = 0
        before = content


# GEM-04
@table.rule("GEM-04")
def responses_alone(request: GeminiRequest) -> Iterator[Finding]:
    """A content with functionResponse parts holds nothing else."""
    for content in request.contents:
        if content.responses:
            for part in content.parts:
                if part.members and not part.has("function_response", *_MEDIA):
                    seen = f"{part.members[0]} beside functionResponse parts; put it into a user content after them"
                    yield Finding(part.path, seen)


# GEM-27
@table.rule("GEM-27")
def media_not_beside(request: GeminiRequest) -> Iterator[Finding]:
    """Media of a result is inside the functionResponse (Gemini 3) or in a later content, never beside it."""
    for content in request.contents:
        if content.responses:
            for part in content.parts:
                if part.has(*_MEDIA) and not part.has("function_response"):
                    yield Finding(part.path, f"{part.members[0]} beside functionResponse parts is counted as one more")


# GEM-05
@table.rule("GEM-05")
def user_comes_last(request: GeminiRequest) -> Iterator[Finding]:
    """A request of several contents ends with a user role or a function response."""
    if len(request.contents) > 1:
        last = request.contents[-1]
        if last.is_model and not last.responses:
            yield Finding(last.path, "multiturn requests must end with a user role or a function response")


# GEM-06
@table.rule("GEM-06")
def single_is_user(request: GeminiRequest) -> Iterator[Finding]:
    """The only content of a request is the user's or has no role."""
    if len(request.contents) == 1 and request.contents[0].is_model and not request.contents[0].responses:
        seen = "single turn requests must end with a user role, or the role field is empty"
        yield Finding(request.contents[0].node.at("role"), seen)


# GEM-07
@table.rule("GEM-07")
def roles_known(request: GeminiRequest) -> Iterator[Finding]:
    """Roles are user and model; `function` is the old name of the user with results."""
    for content in request.contents:
        where = content.node.at("role")
        if content.role == "function":
            yield Finding(where, "the role 'function' is of older endpoints; functionResponse goes in user", "risk")
        elif content.role not in _ROLES and content.role not in _SYSTEM:
            yield Finding(where, f"Please use a valid role: user, model. It is {quoted(content.role)}")
        elif content.node.get("role") in (None, "") and len(request.contents) > 1:
            yield Finding(where, "no role among several contents; Vertex refuses that", "risk")


# GEM-07
@table.rule("GEM-07", severity="risk")
def parts_of_their_role(request: GeminiRequest) -> Iterator[Finding]:
    """A functionCall is the model's, a functionResponse the user's."""
    for part in request.parts():
        if part.role == "model" and part.has("function_response"):
            yield Finding(part.path, "a functionResponse in a model content; it goes in user")
        elif part.role != "model" and part.has("function_call"):
            yield Finding(part.path, "a functionCall that is not the model's")


# GEM-28
@table.rule("GEM-28")
def system_apart(request: GeminiRequest) -> Iterator[Finding]:
    """System text stands in systemInstruction, as text, and not among the contents."""
    for content in request.contents:
        if content.role in _SYSTEM:
            seen = f"Please use a valid role: user, model. Text of {quoted(content.role)} goes into systemInstruction"
            yield Finding(content.node.at("role"), seen)
    for part in request.system.parts if request.system else ():
        if part.members and not part.has("text"):
            yield Finding(
                part.path, f"{part.members[0]} in systemInstruction, which is documented as text only", "risk"
            )


# GEM-08
@table.rule("GEM-08", severity="risk")
def roles_alternate(request: GeminiRequest) -> Iterator[Finding]:
    """Contents of one role do not follow each other; responses alone stand apart from the user's other words."""
    for before, content in pairwise(request.contents):
        # GEM-01 to GEM-03 speak about calls and responses.
        tools = before.calls or before.responses or content.calls or content.responses
        if not tools and (before.role or "user") == (content.role or "user"):
            yield Finding(content.path, f"two {content.role or 'user'} contents in a row; some endpoints refuse that")


# GEM-11
@table.rule("GEM-11", severity="risk")
def ids_on_both(request: GeminiRequest) -> Iterator[Finding]:
    """An id stands on the call and on its response, or on neither."""
    for content, following in _rounds(request):
        for call, response in zip(content.calls, following.responses, strict=True):
            if bool(call.text("id")) is not bool(response.text("id")):
                one, other = ("functionCall", "response") if call.text("id") else ("functionResponse", "call")
                yield Finding(response.at("id"), f"the {one} has an id and its {other} has none")


# GEM-12
@table.rule("GEM-12", severity="risk")
def ids_equal(request: GeminiRequest) -> Iterator[Finding]:
    """Where both have an id, that of the response is its call's, in the order of the calls."""
    for content, following in _rounds(request):
        for call, response in zip(content.calls, following.responses, strict=True):
            one, other = call.text("id"), response.text("id")
            if one and other and one != other:
                seen = (
                    f"functionResponse.id {quoted(other)} does not match functionCall.id {quoted(one)} at {call.path}"
                )
                yield Finding(response.at("id"), seen)


# GEM-13
@table.rule("GEM-13")
def response_named(request: GeminiRequest) -> Iterator[Finding]:
    """A functionResponse has a name and a response, which is an object."""
    for content in request.contents:
        for response in content.responses:
            yield from _named(response)


def _named(response: Node) -> Iterator[Finding]:
    if response.get("name") in (None, ""):
        yield Finding(response.at("name"), "function_response.name: Name cannot be empty.")
    value = response.get("response")
    if value is None:
        yield Finding(response.at("response"), "there is no response; it is documented as required", "risk")
    elif not is_object(value):
        yield Finding(response.at("response"), f"Invalid value (google.protobuf.Struct), {kind(value)}")


# GEM-13
@table.rule("GEM-13")
def response_names_its_call(request: GeminiRequest) -> Iterator[Finding]:
    """The name of a functionResponse is that of its call: of the same id, else of the same position."""
    for content, following in _rounds(request):
        names = Counter(call.text("name") for call in content.calls)
        by_id = {call.text("id"): call.text("name") for call in content.calls if call.text("id")}
        for call, response in zip(content.calls, following.responses, strict=True):
            name = response.text("name")
            asked = by_id.get(response.text("id"), call.text("name"))
            if name and asked and name != asked:
                # In another order Gemini may still pair by name.
                severity: Severity = "risk" if names[name] else "reject"
                seen = f"the response names {quoted(name)}; its call at {call.path} names {listed([asked])}"
                yield Finding(response.at("name"), seen, severity)

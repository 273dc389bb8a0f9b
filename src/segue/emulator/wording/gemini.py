"""What Gemini generateContent says of a body that it refuses.

The JSON parser comes first and names every fault; then the message is checked field by field
(`* GenerateContentRequest.contents[1].parts: …`), also all at once; then the order of turns, in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from segue.conformance.gemini.shape import DATA, snake
from segue.conformance.values import is_list, is_object
from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.gemini_payload import Spot, spot, unknown, unparsed
from segue.wire.base import ApiError

__all__ = ["RULES", "WORDS"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_LONGEST_NAME = 64

_EQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_BAD_NAME = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_LACKS = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance."
)
_SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_ROLES = "Please use a valid role: user, model."
_INVALID = "Request contains an invalid argument."


def _invalid(message: str, param: str | None = None) -> ApiError:
    return ApiError(400, message, "invalid_request_error", "INVALID_ARGUMENT", param)


def _says(message: str) -> Word:
    return lambda _: _invalid(message)


def _spots(fault: Fault) -> Iterator[Spot]:
    return (spot(Fault(fault.body, (violation,))) for violation in fault.violations)


def _by_place(says: Callable[[Fault, Spot], str]) -> Word:
    """The parser's lines where there are any; else the lines of the checks, which this gives; else its sentence."""

    def word(fault: Fault) -> ApiError:
        parsed = [(line, at) for at in _spots(fault) if (line := unparsed(at))]
        if parsed:
            line, at = parsed[0]
            field = at.path if line.startswith("Invalid value") else at.above
            return _invalid("\n".join(line for line, _ in parsed), field or None)
        said = [says(fault, at) for at in _spots(fault)]
        lines = list(dict.fromkeys(line for line in said if line.startswith("* ")))
        return _invalid("\n".join(lines) if said[0].startswith("* ") else said[0])

    return word


def _checked(at: Spot, says: str, path: str | None = None) -> str:
    return f"* GenerateContentRequest.{path or at.checked}: {says}"


def _member(value: object, *spellings: str) -> object:
    if is_object(value):
        return next((value[name] for name in spellings if name in value), None)
    return None


# ------------------------------------------------------------------------------------------------------------- of parts


def _empty(_: Fault, at: Spot) -> str:
    """GEM-09"""
    if at.path == "contents":
        return _checked(at, "contents is not specified")
    return _checked(at, "contents.parts must not be empty.")


def _one_member(fault: Fault) -> ApiError:
    """GEM-10"""
    at = spot(fault)
    part: Mapping[str, object] = at.value if is_object(at.value) else {}
    found = [key for key, value in part.items() if snake(key) in DATA and value is not None]
    if len(found) > 1:
        told = f"oneof field 'data' is already set. Cannot set '{found[1]}'"
        return _invalid(f"Invalid value at '{at.path}' (oneof), {told}", at.path)
    place = at.path.removesuffix(".text")
    return _invalid(f"{place}.data: required oneof field 'data' must have one initialized field")


def _not_here(_: Fault, at: Spot) -> str:
    """GEM-14: what only other endpoints know."""
    return unknown(at)


def _response(_: Fault, at: Spot) -> str:
    """GEM-13"""
    if at.key == "name" and not at.value:
        return _checked(at, "Name cannot be empty.")
    return _INVALID


def _by_generation(fault: Fault) -> ApiError:
    """GEM-24"""
    at = spot(fault)
    if at.key == "id":
        return _invalid(_INVALID)
    if at.path.startswith("tools"):
        says = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools"
        return _invalid(f"{says} with Function calling.")
    model = fault.body.get("model")
    name = model.removeprefix("models/") if isinstance(model, str) else ""
    return _invalid(f"Tool call context circulation is not enabled for {f'models/{name}' if name else 'this model'}")


def _media(fault: Fault) -> ApiError:
    """GEM-27"""
    inside = spot(fault).path.endswith(".function_response.parts")
    return _invalid("Multimodal function responses are not supported for this model" if inside else _EQUAL)


# --------------------------------------------------------------------------------------------------------------- of ids


def _parts(fault: Fault, content: int, *spellings: str) -> list[tuple[str, object]]:
    """The members of this kind in a content, with the paths of their parts."""
    parts = _member(fault.at("contents", content), "parts")
    found = [
        (f"contents[{content}].parts[{at}]", _member(part, *spellings))
        for at, part in enumerate(parts if is_list(parts) else ())
    ]
    return [(path, member) for path, member in found if member is not None]


def _asked(fault: Fault) -> tuple[str, object]:
    """The part and the call that the response at the path answers: the one of the same position."""
    match fault.steps:
        case ("contents", int(content), "parts", int(part), *_):
            here = _parts(fault, content, "functionResponse", "function_response")
            paths = [path for path, _ in here]
            this = f"contents[{content}].parts[{part}]"
            before = paths.index(this) if this in paths else 0
            calls: list[tuple[str, object]] = []
            while content > 0 and (not calls or fault.at("contents", content - 1, "role") == "model"):
                content -= 1
                calls = [*_parts(fault, content, "functionCall", "function_call"), *calls]
            return calls[before] if before < len(calls) else ("", None)
        case _:
            return "", None


def _lone_id(fault: Fault) -> ApiError:
    """GEM-11"""
    at = spot(fault)
    part, _ = _asked(fault)
    where = at.above if at.value or not part else f"{part}.function_call"
    return _invalid(f"Invalid JSON payload received. Unknown name \"id\" at '{where}': Cannot find field.", where)


def _other_id(fault: Fault) -> ApiError:
    """GEM-12"""
    at = spot(fault)
    part, call = _asked(fault)
    here = at.above.removesuffix(".function_response")
    ids = f'functionResponse.id "{at.value}" does not match functionCall.id "{_member(call, "id")}"'
    return _invalid(f"invalid Gemini function call history: request.{here}: {ids} at request.{part}")


# -------------------------------------------------------------------------------------------------------- of signatures


def _called(fault: Fault) -> tuple[str, int]:
    """The function called in the part that the path leads into, and the number of its content, from one."""
    steps = fault.steps
    name = _member(_member(fault.at(*steps[:-1]), "functionCall", "function_call"), "name")
    content = steps[1] if len(steps) > 1 else 0
    return name if isinstance(name, str) else "", content + 1 if isinstance(content, int) else 1


def _unsigned(fault: Fault) -> ApiError:
    """GEM-15"""
    name, position = _called(fault)
    data = f"Additional data, function call `default_api:{name}` , position {position}."
    return _invalid(f"{_LACKS} {data} Please refer to {_SIGNATURES} for more details.")


def _unsigned_at_vertex(fault: Fault) -> ApiError:
    """GEM-16"""
    name, position = _called(fault)
    where = f"function call `default_api:{name}` in the {position}. content block"
    return _invalid(f"Unable to submit request because {where} is missing a `thought_signature`.")


# ------------------------------------------------------------------------------------------------------ of declarations


def _declared(fault: Fault, at: Spot) -> str:
    """GEM-23"""
    match at.key:
        case "name" if at.path.startswith("contents"):
            return _checked(at, "Name cannot be empty." if not at.value else _BAD_NAME)
        case "name":
            return _name(at)
        case "parametersJsonSchema" | "parameters_json_schema" | "responseJsonSchema" | "response_json_schema":
            other = at.path.rpartition(".")[2].removesuffix("_json_schema")
            return _checked(at, f"Must not be set together with `{other}`.")
        case "type":
            name = _member(fault.at(*fault.steps[:-2]), "name")
            said = f"`{name}` functionDeclaration `parameters` schema should be of type OBJECT."
            return f"Unable to submit request because {said}"
        case "items":
            return _checked(at, "missing field.")
        case "enum" if at.value == "":
            return _checked(at, "cannot be empty")
        case "enum":
            return _checked(at, "only allowed for STRING type")
        case "format":
            return _checked(at, "only 'enum' and 'date-time' are supported for STRING type")
        case "required":
            return _checked(at, "property is not defined")
        case "allowedFunctionNames" | "allowed_function_names" if isinstance(at.value, str):
            return _checked(at, f"Function {at.value} is not found in function_declarations.")
        case "allowedFunctionNames" | "allowed_function_names":
            return "Please set allowed_function_names only when function calling mode is ANY."
        case _:
            return unknown(at)


def _name(at: Spot) -> str:
    if isinstance(at.value, str) and len(at.value) <= _LONGEST_NAME and _NAME.fullmatch(at.value):
        return f"Duplicate function declaration found: {at.value}"
    return _checked(at, _BAD_NAME)


RULES: Mapping[str, Word] = {
    "GEM-01": _says(_EQUAL),
    "GEM-02": _says(_CALL_TURN),
    "GEM-03": _says("Please ensure that function response turn comes immediately after a function call turn."),
    "GEM-04": _says("Requests ending with a model turn are not supported."),
    "GEM-05": _says("Please ensure that multiturn requests ends with a user role or a function response."),
    "GEM-06": _says("Please ensure that single turn requests end with a user role or the role field is empty."),
    "GEM-07": _says(_ROLES),
    "GEM-08": _says(_CALL_TURN),
    "GEM-09": _by_place(_empty),
    "GEM-10": _one_member,
    "GEM-11": _lone_id,
    "GEM-12": _other_id,
    "GEM-13": _by_place(_response),
    "GEM-14": _by_place(_not_here),
    "GEM-15": _unsigned,
    "GEM-16": _unsigned_at_vertex,
    "GEM-18": _by_place(lambda _fault, _at: "Corrupted thought signature."),
    "GEM-19": _says("Unable to submit request because Thought signature is not valid"),
    "GEM-21": _says("Thought signature is not valid"),
    "GEM-23": _by_place(_declared),
    "GEM-24": _by_generation,
    "GEM-27": _media,
    "GEM-28": _says(_ROLES),
}


# ------------------------------------------------------------------------------------------------- beside what it reads

_UNREGISTERED = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
    "form of API consumer identity to call this API."
)
_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: "
    "https://ai.dev/rate-limit."
)
_INTERNAL = (
    "An internal error has occurred. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)
_DEMAND = (
    "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later."
)


def _no_model(model: str) -> ApiError:
    name = f"models/{model.removeprefix('models/')}"
    says = f"{name} is not found for API version v1beta, or is not supported for generateContent."
    advice = "Call ModelService.ListModels to see the list of available models and their supported methods."
    return ApiError(404, f"{says} {advice}", "not_found_error", "NOT_FOUND")


WORDS = Words(
    RULES,
    Troubles(
        no_key=ApiError(403, _UNREGISTERED, "permission_error", "PERMISSION_DENIED"),
        bad_key=ApiError(400, "API key not valid. Please pass a valid API key.", code="API_KEY_INVALID"),
        bad_json=_invalid("Invalid JSON payload received. Unexpected token."),
        no_route=lambda _method, path: ApiError(
            404, f"The requested URL {path} was not found on this server.", "not_found_error", "NOT_FOUND"
        ),
        no_model=_no_model,
        rate_limited=ApiError(429, _QUOTA, "rate_limit_error", "RESOURCE_EXHAUSTED"),
        failed=ApiError(500, _INTERNAL, "api_error", "INTERNAL"),
        overloaded=ApiError(503, _DEMAND, "overloaded_error", "UNAVAILABLE"),
    ),
    first=(
        # the parser, then the checks of fields
        *("GEM-14", "GEM-13", "GEM-23", "GEM-09", "GEM-10", "GEM-07", "GEM-28"),
        # the turns, then what is signed
        *("GEM-06", "GEM-05", "GEM-02", "GEM-03", "GEM-01", "GEM-27", "GEM-04", "GEM-24", "GEM-15", "GEM-18"),
    ),
)

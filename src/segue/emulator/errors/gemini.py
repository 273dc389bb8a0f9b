"""The error texts of Gemini generateContent.

The JSON parser runs first and lists all its errors. Then the fields are checked, also with all errors
(`* GenerateContentRequest.contents[1].parts: …`). Then the order of contents is checked; its error is one sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from segue.conformance.gemini.fields import DATA_FIELDS, to_snake
from segue.conformance.gemini.generation import find_type_name
from segue.conformance.values import is_list, is_object
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, RuleError, StandardErrors, member
from segue.emulator.errors.gemini_payload import Location, invalid_argument, locate, parser_line, unknown_name_line
from segue.wire.base import ApiError

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_LONGEST_NAME = 64

_BAD_NAME = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_NO_NAME = "Name cannot be empty."
_INVALID = "Request contains an invalid argument."
_EQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_LACKS = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance."
)
_SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_ROLES = "Please use a valid role: user, model."


def _located_error(make_line: Callable[[BrokenRule, Location], str]) -> ErrorBuilder:
    """Build the parser's lines if there are any; else the lines or the sentence of `make_line`."""

    def build(broken: BrokenRule) -> ApiError:
        singles = list(broken.singles)
        locations = [locate(single) for single in singles]
        parsed = [(line, at) for at in locations if (line := parser_line(at))]
        if parsed:
            line, at = parsed[0]
            field = at.path if line.startswith("Invalid value") else at.parent_path
            return invalid_argument("\n".join(line for line, _ in parsed), field or None)
        texts = [make_line(single, at) for single, at in zip(singles, locations, strict=True)]
        lines = list(dict.fromkeys(line for line in texts if line.startswith("* ")))
        return invalid_argument("".join(f"{line}\n" for line in lines) if texts[0].startswith("* ") else texts[0])

    return build


def _check_line(at: Location, message: str) -> str:
    return f"* GenerateContentRequest.{at.validator_path}: {message}"


# ---------------------------------------------------------------------------------------------------------------- parts


def _empty_parts_line(_: BrokenRule, at: Location) -> str:
    """GEM-09"""
    if at.path == "contents":
        return _check_line(at, "contents is not specified")
    return _check_line(at, "contents.parts must not be empty.")


def _data_member_error(broken: BrokenRule) -> ApiError:
    """GEM-10"""
    at = locate(broken)
    part: Mapping[str, object] = at.value if is_object(at.value) else {}
    data_keys = [key for key, value in part.items() if to_snake(key) in DATA_FIELDS and value is not None]
    if len(data_keys) > 1:
        message = f"oneof field 'data' is already set. Cannot set '{data_keys[1]}'"
        return invalid_argument(f"Invalid value at '{at.path}' (oneof), {message}", at.path)
    place = at.path.removesuffix(".text")
    return invalid_argument(
        f"* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field\n"
    )


def _unknown_field_line(_: BrokenRule, at: Location) -> str:
    """GEM-14: fields that only other endpoints know."""
    return unknown_name_line(at)


def _response_line(_: BrokenRule, at: Location) -> str:
    """GEM-13"""
    if at.key == "name" and not at.value:
        return _check_line(at, _NO_NAME)
    return _INVALID


def _generation_config_error(broken: BrokenRule) -> ApiError:
    """GEM-30"""
    lines: list[str] = []
    for single in broken.singles:
        path = re.sub("(?<=[a-z])(?=[A-Z])", "_", single.path).lower()
        lines.append(f"Invalid value at '{path}' ({find_type_name(path)}), {json.dumps(single.value, default=str):.80}")
    return invalid_argument("\n".join(lines), broken.path)


def _generation_error(broken: BrokenRule) -> ApiError:
    """GEM-24"""
    at = locate(broken)
    if at.key == "id":
        return invalid_argument(_INVALID)
    if at.path.startswith("tools"):
        message = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools"
        return invalid_argument(f"{message} with Function calling.")
    model = broken.body.get("model")
    name = model.removeprefix("models/") if isinstance(model, str) else ""
    return invalid_argument(
        f"Tool call context circulation is not enabled for {f'models/{name}' if name else 'this model'}"
    )


# --------------------------------------------------------------------------------------------------------- declarations


def _declaration_line(broken: BrokenRule, at: Location) -> str:
    """GEM-23"""
    match at.key:
        case "name" if at.path.startswith("contents"):
            return _check_line(at, _NO_NAME if not at.value else _BAD_NAME)
        case "name":
            return _name_line(at)
        case "parametersJsonSchema" | "parameters_json_schema" | "responseJsonSchema" | "response_json_schema":
            other = at.path.rpartition(".")[2].removesuffix("_json_schema")
            return _check_line(at, f"Must not be set together with `{other}`.")
        case "type":
            name = member(broken.value_at(*broken.steps[:-2]), "name")
            message = f"`{name}` functionDeclaration `parameters` schema should be of type OBJECT."
            return f"Unable to submit request because {message}"
        case "items":
            return _check_line(at, "missing field.")
        case "enum" if at.value == "":
            return _check_line(at, "cannot be empty")
        case "enum":
            return _check_line(at, "only allowed for STRING type")
        case "format":
            return _check_line(at, "only 'enum' and 'date-time' are supported for STRING type")
        case "required":
            return _check_line(at, "property is not defined")
        case "allowedFunctionNames" | "allowed_function_names" if isinstance(at.value, str):
            return _check_line(at, f"Function {at.value} is not found in function_declarations.")
        case "allowedFunctionNames" | "allowed_function_names":
            return "Please set allowed_function_names only when function calling mode is ANY."
        case _:
            return unknown_name_line(at)


def _name_line(at: Location) -> str:
    if isinstance(at.value, str) and len(at.value) <= _LONGEST_NAME and _NAME.fullmatch(at.value):
        return f"Duplicate function declaration found: {at.value}"
    return _check_line(at, _BAD_NAME)


# ---------------------------------------------------------------------------------------------------- order of contents


def _media_error(broken: BrokenRule) -> ApiError:
    """GEM-27"""
    inside = locate(broken).path.endswith(".function_response.parts")
    return invalid_argument("Multimodal function responses are not supported for this model" if inside else _EQUAL)


# ------------------------------------------------------------------------------------------------------------------ ids


def _members_of(broken: BrokenRule, content: int, *spellings: str) -> list[tuple[str, object]]:
    """Return the members under these names in a content, with the paths of their parts."""
    parts = member(broken.value_at("contents", content), "parts")
    found = [
        (f"contents[{content}].parts[{at}]", member(part, *spellings))
        for at, part in enumerate(parts if is_list(parts) else ())
    ]
    return [(path, member) for path, member in found if member is not None]


def _find_answered_call(broken: BrokenRule) -> tuple[str, object]:
    """Return part path and call for the response at the path: the call at the same position."""
    match broken.steps:
        case ("contents", int(content), "parts", int(part), *_):
            here = _members_of(broken, content, "functionResponse", "function_response")
            paths = [path for path, _ in here]
            this = f"contents[{content}].parts[{part}]"
            before = paths.index(this) if this in paths else 0
            calls: list[tuple[str, object]] = []
            while content > 0 and (not calls or broken.value_at("contents", content - 1, "role") == "model"):
                content -= 1
                calls = [*_members_of(broken, content, "functionCall", "function_call"), *calls]
            return calls[before] if before < len(calls) else ("", None)
        case _:
            return "", None


def _unpaired_id_error(broken: BrokenRule) -> ApiError:
    """GEM-11"""
    at = locate(broken)
    part, _ = _find_answered_call(broken)
    where = at.parent_path if at.value or not part else f"{part}.function_call"
    return invalid_argument(
        f"Invalid JSON payload received. Unknown name \"id\" at '{where}': Cannot find field.", where
    )


def _id_mismatch_error(broken: BrokenRule) -> ApiError:
    """GEM-12"""
    at = locate(broken)
    part, call = _find_answered_call(broken)
    here = at.parent_path.removesuffix(".function_response")
    ids = f'functionResponse.id "{at.value}" does not match functionCall.id "{member(call, "id")}"'
    return invalid_argument(f"invalid Gemini function call history: request.{here}: {ids} at request.{part}")


# ----------------------------------------------------------------------------------------------------------- signatures


def _called_function(broken: BrokenRule) -> tuple[str, int]:
    """Return the function called in the part at the path, and the number of its content, from one."""
    steps = broken.steps
    name = member(member(broken.value_at(*steps[:-1]), "functionCall", "function_call"), "name")
    content = steps[1] if len(steps) > 1 else 0
    return name if isinstance(name, str) else "", content + 1 if isinstance(content, int) else 1


def _missing_signature_error(broken: BrokenRule) -> ApiError:
    """GEM-15"""
    name, position = _called_function(broken)
    data = f"Additional data, function call `default_api:{name}` , position {position}."
    return invalid_argument(f"{_LACKS} {data} Please refer to {_SIGNATURES} for more details.")


def _vertex_missing_signature_error(broken: BrokenRule) -> ApiError:
    """GEM-16"""
    name, position = _called_function(broken)
    where = f"function call `default_api:{name}` in the {position}. content block"
    return invalid_argument(f"Unable to submit request because {where} is missing a `thought_signature`.")


RULES: Mapping[str, RuleError] = {
    "GEM-01": invalid_argument(_EQUAL),
    "GEM-02": invalid_argument(_CALL_TURN),
    "GEM-03": invalid_argument(
        "Please ensure that function response turn comes immediately after a function call turn."
    ),
    "GEM-04": invalid_argument("Requests ending with a model turn are not supported."),
    "GEM-05": invalid_argument("Please ensure that multiturn requests ends with a user role or a function response."),
    "GEM-06": invalid_argument(
        "Please ensure that single turn requests end with a user role or the role field is empty."
    ),
    "GEM-07": invalid_argument(_ROLES),
    "GEM-08": invalid_argument(_CALL_TURN),
    "GEM-09": _located_error(_empty_parts_line),
    "GEM-10": _data_member_error,
    "GEM-11": _unpaired_id_error,
    "GEM-12": _id_mismatch_error,
    "GEM-13": _located_error(_response_line),
    "GEM-14": _located_error(_unknown_field_line),
    "GEM-15": _missing_signature_error,
    "GEM-16": _vertex_missing_signature_error,
    "GEM-18": _located_error(lambda _fault, _at: "Corrupted thought signature."),
    "GEM-19": invalid_argument("Unable to submit request because Thought signature is not valid"),
    "GEM-21": invalid_argument("Thought signature is not valid"),
    "GEM-23": _located_error(_declaration_line),
    "GEM-24": _generation_error,
    "GEM-27": _media_error,
    "GEM-30": _generation_config_error,
    "GEM-31": invalid_argument(_INVALID),
    "GEM-28": invalid_argument(_ROLES),
}


# -------------------------------------------------------------------------------------------- errors not about the body

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
_LARGEST = 100 * 2**20


def _no_model(model: str) -> ApiError:
    name = f"models/{model.removeprefix('models/')}"
    message = f"{name} is not found for API version v1beta, or is not supported for generateContent."
    advice = "Call ModelService.ListModels to see the list of available models and their supported methods."
    return ApiError(404, f"{message} {advice}", "not_found_error", "NOT_FOUND")


ERROR_TEXTS = ErrorTexts(
    RULES,
    StandardErrors(
        no_key=ApiError(403, _UNREGISTERED, "permission_error", "PERMISSION_DENIED"),
        bad_key=ApiError(400, "API key not valid. Please pass a valid API key.", code="API_KEY_INVALID"),
        bad_json=lambda _: invalid_argument("Invalid JSON payload received. Unexpected token."),
        missing_field=lambda name, _request, _body: ApiError(
            400, f"* GenerateContentRequest.{name}: {name} is not specified\n", code="INVALID_ARGUMENT"
        ),
        no_route=lambda _method, path: ApiError(
            404, f"The requested URL {path} was not found on this server.", "not_found_error", "NOT_FOUND"
        ),
        no_model=_no_model,
        rate_limited=ApiError(429, _QUOTA, "rate_limit_error", "RESOURCE_EXHAUSTED"),
        server_error=ApiError(500, _INTERNAL, "api_error", "INTERNAL"),
        context_length=invalid_argument(
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."
        ),
        no_credit=ApiError(429, _QUOTA, "rate_limit_error", "QUOTA_EXHAUSTED"),
        overloaded=ApiError(503, _DEMAND, "overloaded_error", "UNAVAILABLE"),
        max_body_bytes=_LARGEST,
        too_large=invalid_argument(f"Request payload size exceeds the limit: {_LARGEST} bytes."),
    ),
    rule_order=(
        # the parser, then the checks of fields
        *("GEM-14", "GEM-30", "GEM-13", "GEM-23", "GEM-09", "GEM-10", "GEM-07", "GEM-28"),
        # the order of contents, then signatures
        *("GEM-06", "GEM-05", "GEM-02", "GEM-03", "GEM-01", "GEM-27", "GEM-04", "GEM-24", "GEM-15", "GEM-18"),
    ),
)

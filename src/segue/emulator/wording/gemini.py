"""The error texts of Gemini generateContent.

The JSON parser is first and lists every error; then the message is checked field by field
(`* GenerateContentRequest.contents[1].parts: …`), also listing all; then the order of turns, in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from segue.conformance.gemini.shape import DATA, snake
from segue.conformance.values import is_object
from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.gemini_payload import Spot, invalid, member, spot, unknown, unparsed
from segue.emulator.wording.gemini_turns import TURNS
from segue.wire.base import ApiError

__all__ = ["RULES", "WORDS"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")
_LONGEST_NAME = 64

_BAD_NAME = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_INVALID = "Request contains an invalid argument."


def _by_place(make_line: Callable[[Fault, Spot], str]) -> Word:
    """Builds the parser's lines if there are any; else the lines or the sentence of `make_line`."""

    def word(fault: Fault) -> ApiError:
        singles = [Fault(fault.body, (violation,)) for violation in fault.violations]
        spots = [spot(single) for single in singles]
        parsed = [(line, at) for at in spots if (line := unparsed(at))]
        if parsed:
            line, at = parsed[0]
            field = at.path if line.startswith("Invalid value") else at.above
            return invalid("\n".join(line for line, _ in parsed), field or None)
        made = [make_line(single, at) for single, at in zip(singles, spots, strict=True)]
        lines = list(dict.fromkeys(line for line in made if line.startswith("* ")))
        return invalid("".join(f"{line}\n" for line in lines) if made[0].startswith("* ") else made[0])

    return word


def _checked(at: Spot, message: str) -> str:
    return f"* GenerateContentRequest.{at.checked}: {message}"


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
        message = f"oneof field 'data' is already set. Cannot set '{found[1]}'"
        return invalid(f"Invalid value at '{at.path}' (oneof), {message}", at.path)
    place = at.path.removesuffix(".text")
    return invalid(
        f"* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field\n"
    )


def _not_here(_: Fault, at: Spot) -> str:
    """GEM-14: fields that only other endpoints know."""
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
        return invalid(_INVALID)
    if at.path.startswith("tools"):
        message = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools"
        return invalid(f"{message} with Function calling.")
    model = fault.body.get("model")
    name = model.removeprefix("models/") if isinstance(model, str) else ""
    return invalid(f"Tool call context circulation is not enabled for {f'models/{name}' if name else 'this model'}")


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
            name = member(fault.at(*fault.steps[:-2]), "name")
            message = f"`{name}` functionDeclaration `parameters` schema should be of type OBJECT."
            return f"Unable to submit request because {message}"
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
    **TURNS,
    "GEM-09": _by_place(_empty),
    "GEM-10": _one_member,
    "GEM-13": _by_place(_response),
    "GEM-14": _by_place(_not_here),
    "GEM-18": _by_place(lambda _fault, _at: "Corrupted thought signature."),
    "GEM-23": _by_place(_declared),
    "GEM-24": _by_generation,
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
_LARGEST = 100 * 2**20


def _no_model(model: str) -> ApiError:
    name = f"models/{model.removeprefix('models/')}"
    message = f"{name} is not found for API version v1beta, or is not supported for generateContent."
    advice = "Call ModelService.ListModels to see the list of available models and their supported methods."
    return ApiError(404, f"{message} {advice}", "not_found_error", "NOT_FOUND")


WORDS = Words(
    RULES,
    Troubles(
        no_key=ApiError(403, _UNREGISTERED, "permission_error", "PERMISSION_DENIED"),
        bad_key=ApiError(400, "API key not valid. Please pass a valid API key.", code="API_KEY_INVALID"),
        bad_json=invalid("Invalid JSON payload received. Unexpected token."),
        no_route=lambda _method, path: ApiError(
            404, f"The requested URL {path} was not found on this server.", "not_found_error", "NOT_FOUND"
        ),
        no_model=_no_model,
        rate_limited=ApiError(429, _QUOTA, "rate_limit_error", "RESOURCE_EXHAUSTED"),
        failed=ApiError(500, _INTERNAL, "api_error", "INTERNAL"),
        overloaded=ApiError(503, _DEMAND, "overloaded_error", "UNAVAILABLE"),
        largest=_LARGEST,
        too_large=invalid(f"Request payload size exceeds the limit: {_LARGEST} bytes."),
    ),
    first=(
        # the parser, then the checks of fields
        *("GEM-14", "GEM-13", "GEM-23", "GEM-09", "GEM-10", "GEM-07", "GEM-28"),
        # the turns, then what is signed
        *("GEM-06", "GEM-05", "GEM-02", "GEM-03", "GEM-01", "GEM-27", "GEM-04", "GEM-24", "GEM-15", "GEM-18"),
    ),
)

"""Gemini's error texts about the order of turns, calls and responses, and signatures."""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.values import is_list
from segue.emulator.wording.fault import Fault, Word
from segue.emulator.wording.gemini_payload import invalid, member, spot
from segue.wire.base import ApiError

__all__ = ["TURNS"]

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


def _says(message: str) -> Word:
    return lambda _: invalid(message)


def _media(fault: Fault) -> ApiError:
    """GEM-27"""
    inside = spot(fault).path.endswith(".function_response.parts")
    return invalid("Multimodal function responses are not supported for this model" if inside else _EQUAL)


# --------------------------------------------------------------------------------------------------------------- of ids


def _parts(fault: Fault, content: int, *spellings: str) -> list[tuple[str, object]]:
    """Returns the members under these names in a content, with the paths of their parts."""
    parts = member(fault.at("contents", content), "parts")
    found = [
        (f"contents[{content}].parts[{at}]", member(part, *spellings))
        for at, part in enumerate(parts if is_list(parts) else ())
    ]
    return [(path, member) for path, member in found if member is not None]


def _asked(fault: Fault) -> tuple[str, object]:
    """Returns part path and call for the response at the path: the call at the same position."""
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
    return invalid(f"Invalid JSON payload received. Unknown name \"id\" at '{where}': Cannot find field.", where)


def _other_id(fault: Fault) -> ApiError:
    """GEM-12"""
    at = spot(fault)
    part, call = _asked(fault)
    here = at.above.removesuffix(".function_response")
    ids = f'functionResponse.id "{at.value}" does not match functionCall.id "{member(call, "id")}"'
    return invalid(f"invalid Gemini function call history: request.{here}: {ids} at request.{part}")


# -------------------------------------------------------------------------------------------------------- of signatures


def _called(fault: Fault) -> tuple[str, int]:
    """Returns the function called in the part at the path, and the number of its content, from one."""
    steps = fault.steps
    name = member(member(fault.at(*steps[:-1]), "functionCall", "function_call"), "name")
    content = steps[1] if len(steps) > 1 else 0
    return name if isinstance(name, str) else "", content + 1 if isinstance(content, int) else 1


def _unsigned(fault: Fault) -> ApiError:
    """GEM-15"""
    name, position = _called(fault)
    data = f"Additional data, function call `default_api:{name}` , position {position}."
    return invalid(f"{_LACKS} {data} Please refer to {_SIGNATURES} for more details.")


def _unsigned_at_vertex(fault: Fault) -> ApiError:
    """GEM-16"""
    name, position = _called(fault)
    where = f"function call `default_api:{name}` in the {position}. content block"
    return invalid(f"Unable to submit request because {where} is missing a `thought_signature`.")


TURNS: Mapping[str, Word] = {
    "GEM-01": _says(_EQUAL),
    "GEM-02": _says(_CALL_TURN),
    "GEM-03": _says("Please ensure that function response turn comes immediately after a function call turn."),
    "GEM-04": _says("Requests ending with a model turn are not supported."),
    "GEM-05": _says("Please ensure that multiturn requests ends with a user role or a function response."),
    "GEM-06": _says("Please ensure that single turn requests end with a user role or the role field is empty."),
    "GEM-07": _says(_ROLES),
    "GEM-08": _says(_CALL_TURN),
    "GEM-11": _lone_id,
    "GEM-12": _other_id,
    "GEM-15": _unsigned,
    "GEM-16": _unsigned_at_vertex,
    "GEM-19": _says("Unable to submit request because Thought signature is not valid"),
    "GEM-21": _says("Thought signature is not valid"),
    "GEM-27": _media,
    "GEM-28": _says(_ROLES),
}

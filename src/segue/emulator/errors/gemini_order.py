"""Gemini's error texts about the order of contents, calls and responses, their ids, and signatures."""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.values import is_list
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder
from segue.emulator.errors.gemini_payload import invalid_argument, locate, member
from segue.wire.base import ApiError

__all__ = ["ORDER_ERRORS"]

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


def _fixed_error(message: str) -> ErrorBuilder:
    return lambda _: invalid_argument(message)


def _media_error(broken: BrokenRule) -> ApiError:
    """GEM-27"""
    inside = locate(broken).path.endswith(".function_response.parts")
    return invalid_argument("Multimodal function responses are not supported for this model" if inside else _EQUAL)


# ------------------------------------------------------------------------------------------------------------------ ids


def _members_of(broken: BrokenRule, content: int, *spellings: str) -> list[tuple[str, object]]:
    """Returns the members under these names in a content, with the paths of their parts."""
    parts = member(broken.value_at("contents", content), "parts")
    found = [
        (f"contents[{content}].parts[{at}]", member(part, *spellings))
        for at, part in enumerate(parts if is_list(parts) else ())
    ]
    return [(path, member) for path, member in found if member is not None]


def _find_answered_call(broken: BrokenRule) -> tuple[str, object]:
    """Returns part path and call for the response at the path: the call at the same position."""
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
    """Returns the function called in the part at the path, and the number of its content, from one."""
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


ORDER_ERRORS: Mapping[str, ErrorBuilder] = {
    "GEM-01": _fixed_error(_EQUAL),
    "GEM-02": _fixed_error(_CALL_TURN),
    "GEM-03": _fixed_error("Please ensure that function response turn comes immediately after a function call turn."),
    "GEM-04": _fixed_error("Requests ending with a model turn are not supported."),
    "GEM-05": _fixed_error("Please ensure that multiturn requests ends with a user role or a function response."),
    "GEM-06": _fixed_error("Please ensure that single turn requests end with a user role or the role field is empty."),
    "GEM-07": _fixed_error(_ROLES),
    "GEM-08": _fixed_error(_CALL_TURN),
    "GEM-11": _unpaired_id_error,
    "GEM-12": _id_mismatch_error,
    "GEM-15": _missing_signature_error,
    "GEM-16": _vertex_missing_signature_error,
    "GEM-19": _fixed_error("Unable to submit request because Thought signature is not valid"),
    "GEM-21": _fixed_error("Thought signature is not valid"),
    "GEM-27": _media_error,
    "GEM-28": _fixed_error(_ROLES),
}

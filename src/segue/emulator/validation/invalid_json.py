"""Error texts for a body that is not a JSON object, with the position of the parse error if the provider gives it."""

from __future__ import annotations

import json
from typing import NamedTuple

from segue.emulator.validation.mistral import pydantic_error
from segue.wire.base import ApiError

_TOO_DEEP = "recursion limit exceeded"


class _ParseFailure(NamedTuple):
    """A parse error: its byte offset from 0, line and column; `at_end` if the body ended too early."""

    offset: int
    line: int
    column: int
    at_end: bool
    reason: str


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def _locate(data: bytes, at: int, why: str) -> _ParseFailure:
    line = data.count(b"\n", 0, at) + 1
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return _ParseFailure(at, line, column, at >= len(data.rstrip()), why)


def _find_failure(data: bytes) -> _ParseFailure | None:
    """Return the parse error; `None` if the body is JSON, but not an object."""
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_reject_constant)
    except UnicodeDecodeError as error:
        return _locate(data, error.start, "invalid unicode code point")
    except json.JSONDecodeError as error:
        # Python reports the start of an unterminated string; other parsers report the end of the body.
        at = len(error.doc) if error.msg.startswith("Unterminated string") else error.pos
        return _locate(data, len(error.doc[:at].encode()), error.msg)
    except ValueError as error:
        return _locate(data, max(data.find(str(error).encode()), 0), "Expecting value")
    except RecursionError:
        return _locate(data, 0, _TOO_DEEP)
    return _locate(data, 0, _TOO_DEEP) if isinstance(value, dict) else None


def _anthropic_error(data: bytes) -> ApiError:
    failure = _find_failure(data)
    if failure is None:
        return ApiError(400, "Input should be a valid dictionary or object to extract fields from")
    if not data.strip():
        why = "Input is a zero-length, empty document"
    elif failure.reason == _TOO_DEEP:
        why = "Recursion limit reached"
    else:
        why = "unexpected end of data" if failure.at_end else "unexpected character"
    message = f"{why}: line {failure.line} column {failure.column} (char {failure.offset})"
    return ApiError(400, f"The request body is not valid JSON: {message}")


def _deepseek_error(data: bytes) -> ApiError:
    failure, code = _find_failure(data), "invalid_request_error"
    if failure is None:
        kind = {"[": "sequence", '"': "string", "n": "null", "t": "boolean", "f": "boolean"}.get(
            data.strip()[:1].decode(), "number"
        )
        message = f"invalid type: {kind}, expected struct ChatCompletionRequest"
        lines = data.rstrip().split(b"\n")
        place = f"line {len(lines)} column {len(lines[-1])}"
        return ApiError(
            400, f"Failed to deserialize the JSON body into the target type: {message} at {place}", code=code
        )
    if failure.reason == _TOO_DEEP:
        why, column = _TOO_DEEP, 128
    elif failure.at_end:
        inside = "an object" if data.lstrip().startswith(b"{") else "a value"
        why, column = f"EOF while parsing {inside}", failure.column - 1
    elif "property name" in failure.reason:
        why, column = "key must be a string", failure.column
    elif "trailing comma" in failure.reason:
        why, column = "trailing comma", failure.column + 1
    else:
        why, column = (
            {"Expecting ':' delimiter": "expected `:`", "Expecting ',' delimiter": "expected `,` or `}`"}.get(
                failure.reason, "expected value"
            ),
            failure.column,
        )
    return ApiError(
        400, f"Failed to parse the request body as JSON: {why} at line {failure.line} column {column}", code=code
    )


def _mistral_error(data: bytes) -> ApiError:
    failure = _find_failure(data)
    if failure is None:
        message = "Input should be a valid dictionary or object to extract fields from"
        return pydantic_error("model_attributes_type", message, json.loads(data))
    message = "JSON decode error"
    place = {
        "type": "json_invalid",
        "loc": ["body", failure.offset],
        "msg": message,
        "input": {},
        "ctx": {"error": failure.reason},
    }
    return ApiError(422, message, details=(place,))


_ERRORS_BY_API = {"anthropic": _anthropic_error, "deepseek": _deepseek_error, "mistral": _mistral_error}


def invalid_json_error(api: str, data: bytes) -> ApiError | None:
    """Return the error of providers that report the position; `None` for the others."""
    make_error = _ERRORS_BY_API.get(api)
    return None if make_error is None else make_error(data)

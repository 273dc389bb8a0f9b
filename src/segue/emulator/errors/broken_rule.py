"""What a provider's error texts are made of: the broken rule or the place where a body is not JSON, and the tables of
one API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from segue.conformance.rule import Violation
from segue.conformance.values import is_object
from segue.emulator.http_messages import HttpRequest
from segue.wire.base import ApiError

TOO_DEEP = "recursion limit exceeded"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def parse_path(path: str) -> tuple[str | int, ...]:
    """Return the steps of `messages[1].content[0]`."""
    return tuple(name or int(index) for name, index in _STEP.findall(path))


def member(value: object, *spellings: str) -> Any:
    """Return the value of an object under one of these names, or None."""
    return next((value[name] for name in spellings if name in value), None) if is_object(value) else None


class BrokenRule(Struct, frozen=True):
    """All violations of one rule in a body, in order."""

    body: Mapping[str, Any]
    violations: tuple[Violation, ...]

    @property
    def path(self) -> str:
        """The path of the first violation: `messages[1].content[0]`."""
        return self.violations[0].path

    @property
    def dotted_path(self) -> str:
        """The path as `messages.1.content.0`."""
        return self.path.replace("[", ".").replace("]", "")

    @property
    def steps(self) -> tuple[str | int, ...]:
        return parse_path(self.path)

    @property
    def message_index(self) -> int:
        """The index of the message or item in the path."""
        return next((step for step in self.steps if isinstance(step, int)), 0)

    @property
    def singles(self) -> Iterator[BrokenRule]:
        """The same for each violation alone."""
        return (BrokenRule(self.body, (violation,)) for violation in self.violations)

    @property
    def message(self) -> str:
        """The message of the first violation, for rules without a provider's text."""
        return self.violations[0].message

    def value_at(self, *steps: str | int) -> Any:
        """Return the value at these path steps of the body, or None."""
        value: Any = self.body
        for step in steps:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    @property
    def value(self) -> Any:
        """The value at the path, or None."""
        return self.value_at(*self.steps)


class ParseFailure(NamedTuple):
    """A parse error: its byte offset from 0, line and column; `at_end` if the body ended too early."""

    offset: int
    line: int
    column: int
    at_end: bool
    reason: str


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def _locate(data: bytes, at: int, why: str) -> ParseFailure:
    line = data.count(b"\n", 0, at) + 1
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return ParseFailure(at, line, column, at >= len(data.rstrip()), why)


def find_parse_failure(data: bytes) -> ParseFailure | None:
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
        return _locate(data, 0, TOO_DEEP)
    return _locate(data, 0, TOO_DEEP) if isinstance(value, dict) else None


ErrorBuilder: TypeAlias = Callable[[BrokenRule], ApiError]
RuleError: TypeAlias = ApiError | ErrorBuilder
"""The error of a rule: always the same one, or built from the values of the body."""
Validator: TypeAlias = Callable[[Mapping[str, Any], HttpRequest], ApiError | None]
"""Returns the error for an invalid body, `None` if it is valid."""


def build_error(error: RuleError, broken: BrokenRule) -> ApiError:
    return error if isinstance(error, ApiError) else error(broken)


class StandardErrors(Struct, frozen=True):
    """The provider's errors that are not about the content of the body."""

    no_key: ApiError
    bad_key: ApiError
    bad_json: Callable[[bytes], ApiError]
    """By body: some providers report the position in it."""
    no_route: Callable[[str, str], ApiError]
    """By method and path."""
    no_model: Callable[[str], ApiError]
    """By model name."""
    rate_limited: ApiError
    server_error: ApiError
    overloaded: ApiError
    context_length: ApiError
    """The prompt has more tokens than the model takes."""
    missing_field: Callable[[str, HttpRequest, Mapping[str, Any]], ApiError]
    """By name of a field that every body must have."""
    no_credit: ApiError
    """The quota or the credit is used up."""
    wrong_method: Callable[[str, str], ApiError] | None = None
    """By method and path; without it a wrong method gives `no_route`."""
    max_body_bytes: int = 50 * 2**20
    """The maximum size of a body in bytes."""
    too_large: ApiError = ApiError(413, "Request Entity Too Large")


class ErrorTexts(Struct, frozen=True):
    """The error texts of one API. `rule_order` lists the rules that it checks before all others.

    `validate` is what the provider checks before it looks at the conversation, and no conformance rule covers: types of
    members, unknown members, content parts of another API, invalid JSON Schemas. Without one, chat APIs check the
    messages.
    """

    rules: Mapping[str, RuleError]
    standard: StandardErrors
    rule_order: tuple[str, ...] = ()
    validate: Validator | None = None

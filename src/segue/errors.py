"""All exceptions of segue.

```
SegueError
├── InputError            invalid input; `.path` is its place, such as `messages[3].content`
├── ProjectionError       an id or a name would be ambiguous: a bug in segue
├── RemoteProtocolError   a provider's reply or stream violates its own protocol
├── ProviderError         a provider request failed; see `.cause` and `.retryable`
└── StoreError            the conversation store failed; see `.cause` and `.retryable`
    ├── ConflictError     another writer changed the conversation first; read it again
    └── LeaseError        another process holds the conversation
```

Errors of the caller and errors of a provider are separate branches: `except RemoteProtocolError` never catches bad
input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from segue.error_kinds import KIND_OF_CAUSE, KINDS, ErrorKind, ProviderErrorCause

__all__ = [
    "ConflictError",
    "InputError",
    "LeaseError",
    "ProjectionError",
    "ProviderError",
    "ProviderErrorCause",
    "RemoteProtocolError",
    "SegueError",
    "StoreError",
    "StoreErrorCause",
    "require_string",
    "unknown_name_error",
    "validate_profile",
]

StoreErrorCause = Literal[
    "conflict",  # changed by another writer
    "corrupt",  # damaged or truncated
    "failed",  # any other error of the database engine
    "foreign",  # not a segue store
    "full",  # disk full
    "leased",  # held by another process
    "locked",  # another writer held the lock for too long
    "lost",  # the server can't be reached, or the connection broke
    "missing",  # no such conversation, or deleted
    "newer",  # written by a newer version of segue
    "readonly",  # readable but not writable
    "refused",  # no permission for the file or the server
]

SuggestedCommand = Literal["diag", "doctor"]
_SUGGESTIONS: dict[SuggestedCommand, str] = {
    "diag": "segue diag{conversation} shows what was sent and why it was rejected",
    "doctor": "segue doctor --online tests it",
}


# A quoted value in a message, as `repr` formats it or between backticks. A value above `_MAX_QUOTED` is shortened.
_QUOTED_VALUE = re.compile(r"(?<!\w)'(?:[^'\\]|\\.)*+'|(?<!\w)\"(?:[^\"\\]|\\.)*+\"|`[^`]*+`", re.DOTALL)
_MAX_QUOTED = 120
_LONG_WORD = re.compile(r"\S{121,}")
_KEPT = 60
_MAX_MESSAGE = 800


def shorten_quoted(message: str) -> str:
    """Return a message with its long quoted values shortened: unknown names may have any length."""
    if len(message) <= _MAX_QUOTED:
        return message
    return _QUOTED_VALUE.sub(
        lambda value: value[0] if len(value[0]) <= _MAX_QUOTED else f"{value[0][:_KEPT]}…{value[0][0]}", message
    )


def mask_quoted(message: str) -> str:
    """Return a message without its quoted values, which may be parts of a conversation."""
    return _QUOTED_VALUE.sub("…", message)


def shorten_message(message: str) -> str:
    """Return a message with its long quoted values, long words and its middle shortened; most are returned unchanged.

    A name in a message is not always quoted.
    """
    if len(message) <= _MAX_QUOTED:
        return message
    message = _LONG_WORD.sub(lambda word: f"{word[0][:_KEPT]}…", shorten_quoted(message))
    half = _MAX_MESSAGE // 2
    return message if len(message) <= _MAX_MESSAGE else f"{message[:half]}…{message[-half:]}"


_TYPE_NAMES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "an object",
    "str": "a string",
}


def mismatch_error(error: Exception, path: str) -> InputError:
    """Return the error for a value of another type than msgspec expected, in words, with its place."""
    text, _, place = str(error).partition(" - at `$")
    if match := re.fullmatch(r"Expected `(.+)`, got `(.+)`", text):
        expected = match[1].replace("int | float", "float").removesuffix(" | null").split(" | ")
        names = " or ".join(_TYPE_NAMES.get(name, name) for name in expected)
        text = f"{names} was expected, not {_TYPE_NAMES.get(match[2], match[2])}"
    return InputError(text[:1].lower() + text[1:], path=path + place.rstrip("`"))


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`; one in y ends in -ies: `2 replies`."""
    if number == 1:
        return f"1 {noun}"
    is_regular = noun[-1:] != "y" or noun[-2:-1] in "aeiou"
    return f"{number:,} {f'{noun}s' if is_regular else f'{noun[:-1]}ies'}"


def format_os_error(error: OSError | ValueError) -> str:
    """Return the system's error message without a leading capital."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


class SegueError(Exception):
    """The base class of all segue errors; never raised itself."""


class InputError(SegueError):
    """Bad input. `path` is written like `messages[3].content[0].type`; empty means the whole input."""

    def __init__(self, message: str, *, path: str = "") -> None:
        message = shorten_quoted(message)
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path

    def with_prefix(self, prefix: str) -> InputError:
        """Return the same error with `prefix` prepended to its path."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        return InputError(self.message, path=f"{prefix}{separator}{self.path}")


class UndetectedApiError(InputError):
    """The API of the input can't be detected. `reason` is the message without the hint to pass `source`."""

    def __init__(self, reason: str, *, path: str = "") -> None:
        super().__init__(f"{reason}; pass `source`", path=path)
        self.reason = reason

    def with_prefix(self, prefix: str) -> UndetectedApiError:
        return UndetectedApiError(self.reason, path=super().with_prefix(prefix).path)


def unknown_name_error(
    kind: str, name: str, known: Iterable[str], *, path: str, others: Iterable[str] = ()
) -> InputError:
    """Build the error for an unknown name. It suggests the nearest name of `known` and `others`, or lists `known`."""
    # Imported here, because only errors need it.
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name[:_MAX_QUOTED].lower().replace("_", "-"), [*names, *others], 1, 0.7)
    hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}; {hint}", path=path)


def require_string(value: object, argument: str, *, required: bool = True) -> None:
    """Raise `InputError` if an argument is not a string; None is allowed unless it is required."""
    if not isinstance(value, str) and (required or value is not None):
        raise InputError(f"a string was expected, not {type(value).__name__}", path=argument)


def validate_profile(profile: object, api: str, apis: Mapping[str, str]) -> None:
    """Raise `InputError` for an unknown profile, or one of another API; None is allowed. `apis` maps profile to API."""
    require_string(profile, "profile", required=False)
    if profile is None:
        return
    names = sorted(name for name in apis if apis[name] == api)
    if not names:
        raise InputError(f"{api} has no profiles; only {' and '.join(sorted(set(apis.values())))} have", path="profile")
    if profile in apis and profile not in names:
        raise InputError(f"{profile} is a profile of {apis[str(profile)]}, not of {api}", path="profile")
    if profile not in names:
        raise unknown_name_error("profile", str(profile), names, path="profile")


class ProjectionError(SegueError):
    """An id or tool name could not be projected one to one."""


class RemoteProtocolError(SegueError):
    """A provider's reply or stream violates its API, or is an error body.

    For an error body, `message`, `kind` and `code` are the provider's own, and `status` is the HTTP status where known.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        code: str | None = None,
        kind: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.kind = kind
        self.message = text if message is None else message


class ProviderError(SegueError):
    """A provider request failed. The message suggests a fix and never contains a key.

    `brief` is a short text that follows the provider's name, such as `timed out`. `retry_after` is the delay in seconds
    that the provider requires. `retryable` is True if the same request may succeed later without changes. `command` is
    the segue command that the end of the message suggests; `message` is the message without that suggestion.
    `kind` is finer than `cause`; `code` and `type` are those of the provider's error, `param` the field that it names.
    `context_limit` and `output_limit` are the limits in tokens that the provider's text names.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: ProviderErrorCause,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        brief: str | None = None,
        retryable: bool | None = None,
        command: SuggestedCommand | None = None,
        kind: ErrorKind | None = None,
        code: str | None = None,
        type: str | None = None,
        param: str | None = None,
        context_limit: int | None = None,
        output_limit: int | None = None,
    ) -> None:
        self.message = message
        self.command: SuggestedCommand | None = command
        super().__init__(self.format())
        self.cause: ProviderErrorCause = cause
        self.provider = provider
        self.model = model
        self.status = status
        self.retry_after = retry_after
        self.kind: ErrorKind = KIND_OF_CAUSE[cause] if kind is None else kind
        self.code = code
        self.type = type
        self.param = param
        row = KINDS[self.kind]
        self.brief = row.brief if brief is None else brief
        self.retryable = not row.is_final if retryable is None else retryable
        self.break_reason = ""
        self.context_limit = context_limit
        self.output_limit = output_limit

    @property
    def is_too_long(self) -> bool:
        """Whether the request does not fit into the model's context, not even with a shorter reply."""
        return self.kind == "too-long" and self.output_limit is None

    def format(self, conversation_id: str | None = None) -> str:
        """Return the message with the suggested command, which names the conversation if its id is given."""
        if self.command is None:
            return self.message
        suggestion = _SUGGESTIONS[self.command].format(conversation=f" {conversation_id}" if conversation_id else "")
        return f"{self.message}; {suggestion}"

    @classmethod
    def broken(cls, provider: str, model: str, why: str) -> ProviderError:
        """Return the error for a reply that broke off."""
        reason = " ".join(why.split())
        message = f"the reply of {provider}/{model} broke off: {reason}"
        error = cls(message, cause="broken", provider=provider, model=model)
        error.break_reason = reason
        return error


class StoreError(SegueError):
    """A store can't be opened, read or written. Acknowledged writes are not lost.

    `retryable` is True if the same call may succeed later without changes.
    """

    def __init__(self, message: str, *, cause: StoreErrorCause = "failed", retryable: bool = False) -> None:
        super().__init__(message)
        self.cause: StoreErrorCause = cause
        self.retryable = retryable


class ConflictError(StoreError):
    """The conversation was changed by another writer since it was read. Nothing was written."""

    def __init__(self, conversation: str, expected: int, actual: int) -> None:
        super().__init__(
            f"conversation {conversation!r} was changed by another writer: its last event is {actual}, not {expected}; "
            "read it again before writing",
            cause="conflict",
        )
        self.conversation = conversation
        self.expected = expected
        self.actual = actual


class LeaseError(StoreError):
    """Another process holds the conversation, or this process lost its lease (`owner` is None).

    The lease began at `since` and ends at `until` unless it is renewed; both are UTC in ISO format.
    """

    def __init__(
        self, conversation: str, owner: str | None, since: str | None = None, until: str | None = None
    ) -> None:
        state = "is no longer leased"
        if owner is not None:
            parts = owner.split(":")
            process = f"{parts[1]} on {parts[0]}" if len(parts) == 4 else owner
            state = (
                f"is open in another process ({process}), at least until {until}: try again then, or continue in a "
                "copy (--fork, in a chat /fork)"
            )
        super().__init__(f"conversation {conversation!r} {state}", cause="leased", retryable=owner is not None)
        self.conversation = conversation
        self.owner = owner
        self.since = since
        self.until = until

"""Everything segue raises.

```
SegueError
├── InputError            what the caller gave can't be read or can't be meant; `.path` names the place
├── ProjectionError       segue could not keep its own promise (an id or a name would be ambiguous): a bug of ours
├── RemoteProtocolError   what a provider sent is not its own protocol
├── UpstreamError         a provider did not answer, or not as asked; `.cause` says how, `.retryable` if it passes
└── StoreError            the store of conversations failed; `.cause` says how, `.retryable` whether it may pass
    ├── ConflictError     somebody else wrote the conversation first; read it again
    └── LeaseError        another process has the conversation in hand
```

Our fault and theirs are different branches: `except RemoteProtocolError` never hides a bad call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

__all__ = [
    "ConflictError",
    "InputError",
    "LeaseError",
    "ProjectionError",
    "RemoteProtocolError",
    "SegueError",
    "StoreCause",
    "StoreError",
    "UpstreamCause",
    "UpstreamError",
    "checked_profile",
    "text_argument",
]

StoreCause = Literal[
    "conflict",  # written by somebody else meanwhile
    "corrupt",  # damaged or cut off
    "failed",  # anything else that the engine reports
    "foreign",  # not a store of segue's
    "full",  # no room on the disk
    "leased",  # in another process's hands
    "locked",  # somebody else kept writing for too long
    "lost",  # the server can't be reached, or the connection broke
    "missing",  # there is no such conversation (any more)
    "newer",  # written by a newer segue
    "readonly",  # may be read but not written
    "refused",  # the file or the server may not be used by this user
]

UpstreamCause = Literal[
    "auth",  # the provider does not take the key, or not for this
    "broken",  # the reply broke off, or is none
    "key",  # there is no key
    "missing",  # there is no such model, or no such address
    "network",  # the provider can't be reached, or the connection broke before the reply
    "overloaded",  # too much to do, or out of order
    "rate-limited",  # too many requests, or no credit left
    "refused",  # the request itself is refused
    "timeout",  # nothing came in time
]
_BRIEF: dict[UpstreamCause, str] = {
    "auth": "refused the key",
    "broken": "broke off",
    "key": "has no key",
    "missing": "has no such model",
    "network": "can't be reached",
    "overloaded": "is overloaded",
    "rate-limited": "is rate limited",
    "refused": "refused the request",
    "timeout": "does not answer",
}
_PASSING = frozenset[UpstreamCause]({"broken", "network", "overloaded", "rate-limited", "timeout"})


class SegueError(Exception):
    """The root; never raised itself."""


class InputError(SegueError):
    """Bad input. `path` is written like `messages[3].content[0].type`; empty means the whole input."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path

    def under(self, prefix: str) -> InputError:
        """The same error seen from one level further out."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        return InputError(self.message, path=f"{prefix}{separator}{self.path}")


def text_argument(value: object, argument: str, *, needed: bool = True) -> None:
    """Refuses an argument of the caller's that is no string; None is one that was not given."""
    if not isinstance(value, str) and (needed or value is not None):
        raise InputError(f"a string was expected, not {type(value).__name__}", path=argument)


def checked_profile(profile: object, api: str, known: Iterable[str], *, on: str = "openai-chat") -> None:
    """Refuses a profile that is not one of the `known`, or of an API that has none; None is one that was not given."""
    text_argument(profile, "profile", needed=False)
    if profile is None:
        return
    if api != on:
        raise InputError(f"{api} has no profiles; servers that speak {on} have", path="profile")
    if profile not in (names := sorted(known)):
        raise InputError(f"{profile!r} is not a known profile of {on}; known are {', '.join(names)}", path="profile")


class ProjectionError(SegueError):
    """An id or tool name could not be projected one to one."""


class RemoteProtocolError(SegueError):
    """A provider's reply or stream that is not what its API says, or its error.

    Of an error body `message` is the provider's own sentence, `kind` and `code` what it calls the error, and `status`
    the HTTP status that goes with it, where that can be told.
    """

    def __init__(
        self,
        said: str,
        *,
        status: int | None = None,
        code: str | None = None,
        kind: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(said)
        self.status = status
        self.code = code
        self.kind = kind
        self.message = said if message is None else message


class UpstreamError(SegueError):
    """A provider that did not answer, or not as asked. The text names what fixes it, and never holds a key.

    `brief` is a few words that go behind the provider's name. `retry_after` is how many seconds it asked for.
    `retryable` says that the same request may succeed later, without anybody doing anything about it.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: UpstreamCause,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        brief: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.cause: UpstreamCause = cause
        self.provider = provider
        self.model = model
        self.status = status
        self.retry_after = retry_after
        self.brief = _BRIEF[cause] if brief is None else brief
        self.retryable = cause in _PASSING if retryable is None else retryable

    @classmethod
    def broken(cls, provider: str, model: str, why: str) -> UpstreamError:
        """A reply that broke off in the middle."""
        said = " ".join(why.split())
        return cls(f"the reply of {provider}/{model} broke off: {said}", cause="broken", provider=provider, model=model)


class StoreError(SegueError):
    """A store that can't be opened, read or written. What was acknowledged before is still there.

    `retryable` says that the same call may succeed later, without anybody doing anything about it.
    """

    def __init__(self, message: str, *, cause: StoreCause = "failed", retryable: bool = False) -> None:
        super().__init__(message)
        self.cause: StoreCause = cause
        self.retryable = retryable


class ConflictError(StoreError):
    """An append that was meant for another state of the conversation. Nothing of it was written."""

    def __init__(self, conversation: str, expected: int, actual: int) -> None:
        super().__init__(
            f"conversation {conversation!r} was written by somebody else: event {expected} was expected to be its "
            f"last, it is event {actual}; read it again before writing",
            cause="conflict",
        )
        self.conversation = conversation
        self.expected = expected
        self.actual = actual


class LeaseError(StoreError):
    """A conversation that is in other hands, `until` then unless they keep it for longer.

    `owner` is None where nobody has it (any more); `since` and `until` are UTC, ISO.
    """

    def __init__(
        self, conversation: str, owner: str | None, since: str | None = None, until: str | None = None
    ) -> None:
        held = "is no longer held by anybody"
        if owner is not None:
            held = (
                f"is held by {owner!r} since {since}; it is free at {until} unless they go on, so try again then, "
                "or go on in a copy of it (--fork)"
            )
        super().__init__(f"conversation {conversation!r} {held}", cause="leased", retryable=owner is not None)
        self.conversation = conversation
        self.owner = owner
        self.since = since
        self.until = until

"""Everything segue raises.

```
SegueError
├── InputError            what the caller gave can't be read or can't be meant; `.path` names the place
├── ProjectionError       segue could not keep its own promise (an id or a name would be ambiguous): a bug of ours
└── RemoteProtocolError   what a provider sent is not its own protocol
```

Our fault and theirs are different branches: `except RemoteProtocolError` never hides a bad call.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["InputError", "ProjectionError", "RemoteProtocolError", "SegueError", "checked_profile", "text_argument"]


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

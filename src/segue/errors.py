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

__all__ = ["InputError", "ProjectionError", "RemoteProtocolError", "SegueError"]


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


class ProjectionError(SegueError):
    """An id or tool name could not be projected one to one."""


class RemoteProtocolError(SegueError):
    """A provider's reply or stream that is not what its API says."""

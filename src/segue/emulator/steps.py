"""The steps of one model reply. Scripts and the built-in model both produce them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct

from segue.canonical.request import Finish, Request


class TextStep(Struct, frozen=True, tag="say"):
    text: str


class ThinkStep(Struct, frozen=True, tag="think"):
    """Reasoning; not sent by an API that does not show it."""

    text: str


class CallStep(Struct, frozen=True, tag="call"):
    """A tool call. `text` is the arguments if they are not JSON; `id` replaces the generated id."""

    name: str
    arguments: Any = UNSET
    text: str | None = None
    id: str | None = None


class WaitStep(Struct, frozen=True, tag="wait"):
    """A pause: before the reply if it is the first step, else inside the stream."""

    seconds: float


class ErrorStep(Struct, frozen=True, tag="trouble"):
    """An error: the response if it is the first step, else an error inside the stream.

    Without a message it has the provider's standard text for this status.
    """

    status: int
    message: str | None = None
    retry_after: float | None = None


class CutStep(Struct, frozen=True, tag="cut"):
    """The stream ends here: silently (`end`) or with a connection reset (`reset`). The block before it is not closed.
    Of a reply that is not streamed, half is sent."""

    mode: Literal["end", "reset"] = "end"


class EndStep(Struct, frozen=True, tag="end"):
    """The finish reason, if it does not follow from the steps, and the stop sequence."""

    finish: Finish
    sequence: str | None = None


Step: TypeAlias = TextStep | ThinkStep | CallStep | WaitStep | ErrorStep | CutStep | EndStep
ReplySteps: TypeAlias = tuple[Step, ...]
ScriptFunction: TypeAlias = Callable[[Request], ReplySteps | None]
"""Returns the reply to a request; None for that of the built-in model."""

"""What a model does in one reply, step by step. Scripts and the built-in model both speak in these words."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct

from segue.canonical.request import Finish

__all__ = ["Call", "Cut", "End", "Say", "Step", "Think", "Trouble", "Turn", "Wait"]


class Say(Struct, frozen=True, tag="say"):
    text: str


class Think(Struct, frozen=True, tag="think"):
    """Reasoning. An API that shows none keeps it to itself."""

    text: str


class Call(Struct, frozen=True, tag="call"):
    """A call of a tool. `text` are the arguments as they stand where they are no JSON; `id` one in place of the API's
    own style."""

    name: str
    arguments: Any = UNSET
    text: str | None = None
    id: str | None = None


class Wait(Struct, frozen=True, tag="wait"):
    """Silence: before the reply where it comes first, else inside the stream."""

    seconds: float


class Trouble(Struct, frozen=True, tag="trouble"):
    """An error: as the answer where nothing was said yet, else as the API tells of one inside a stream.

    Without a message it is told in the provider's usual words for this status.
    """

    status: int
    message: str | None = None
    retry_after: float | None = None


class Cut(Struct, frozen=True, tag="cut"):
    """The stream ends here: without a word (`end`), or with the connection (`reset`). The words before it are cut off,
    too: their block has no end. Of a reply that comes at once there is half."""

    how: Literal["end", "reset"] = "end"


class End(Struct, frozen=True, tag="end"):
    """Why the reply ends, where it is not what follows from the steps; and the stop sequence that it ended at."""

    finish: Finish
    sequence: str | None = None


Step: TypeAlias = Say | Think | Call | Wait | Trouble | Cut | End
Turn: TypeAlias = tuple[Step, ...]

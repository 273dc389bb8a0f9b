"""What a tool is, and what it is given when it runs."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from segue.canonical.blocks import Block

__all__ = ["Answer", "Approve", "Arguments", "Context", "Question", "Refused", "Result", "Tool", "ToolError"]

Arguments: TypeAlias = Mapping[str, Any]


class ToolError(Exception):
    """What went wrong, in words for the model. Any other exception is told by its type and text."""


class Result(Struct, frozen=True):
    """What a tool gives back: text, blocks (a picture), or any other value, which is told as JSON."""

    content: str | tuple[Block, ...] | Mapping[str, Any] | list[Any]
    error: bool = False


class Question(Struct, frozen=True):
    """Whether a call may run. `subject` is what rules are held against: a path, a command, an address.

    `title` is one line, `detail` what a person wants to see before saying yes (a diff, the whole command). One that is
    not `needed` is asked only where a rule says so. `also` are other names of the subject, on which a rule that denies
    or asks holds too; of `parts` each has to be allowed. `allowed_by` says which rules may allow it: any whose
    `pattern` fits, only those for the whole `tool` or this very subject, or only one that gives the subject by `name`.
    `to_name` are, for each of the parts, the words that a wildcard does not cover: a rule has to have them itself.
    """

    tool: str
    subject: str
    title: str
    detail: str = ""
    needed: bool = True
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    allowed_by: Literal["pattern", "tool", "name"] = "pattern"
    to_name: tuple[tuple[str, ...], ...] = ()


class Refused(Struct, frozen=True):
    """A no, and why, in words for the model."""

    words: str


Answer: TypeAlias = Literal["once", "always", "no"] | Refused
Approve: TypeAlias = Callable[[Question], Awaitable[Answer]]
"""Asks somebody. `always` holds for this tool and subject as long as the session lives."""


@dataclass
class Context:
    """Where a call runs. `cancelled` is set when nobody waits for it any more; long tools look at it.

    `granted` tells whether leave was given for what a tool finds itself about to do, which may be something else than
    what it asked about: a link can be moved in between. `limit` is how many seconds the user gives a call, if that was
    said.
    """

    folder: Path
    call_id: str = ""
    progress: Callable[[str], None] = lambda text: None
    cancelled: threading.Event = field(default_factory=threading.Event)
    granted: Callable[[Question], bool] = lambda question: True
    limit: float | None = None


Run: TypeAlias = Callable[[Arguments, Context], "Result | str | Awaitable[Result | str]"]


def _no_paths(arguments: Arguments, folder: Path) -> Sequence[Path]:
    return ()


def _no_question(arguments: Arguments, folder: Path) -> Question | None:
    return None


def _nothing_shown(arguments: Arguments) -> str:
    return ""


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call.

    `timeout` is how many seconds a call may take. What the user has set is never exceeded, but for one whose
    `timing` is its `own`; one that is timed `inside` ends by itself after `Context.limit`, which may be more
    than its usual time.

    `blocking` ones run in a thread and are given up on cancellation; others are coroutines and are cancelled. `writes`
    are the files that a call changes: calls that change the same one run in call order. `question` is what has to be
    asked before a call may run; it is None, or not `needed`, where a call neither changes nor leaves the folder.
    `withholds` gives the secrets that the tool is kept from, names by values: no tool beside it tells them either.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run
    blocking: bool = True
    timeout: float | None = None
    timing: Literal["outside", "inside", "own"] = "outside"
    writes: Callable[[Arguments, Path], Sequence[Path]] = _no_paths
    question: Callable[[Arguments, Path], Question | None] = _no_question
    shown: Callable[[Arguments], str] = _nothing_shown
    withholds: Callable[[], Mapping[str, str]] | None = None

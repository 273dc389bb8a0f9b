"""The types that tools use: `Tool`, the `Context` of a call, its `Result`, and `ApprovalRequest`."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from segue.canonical.blocks import Block

Arguments: TypeAlias = Mapping[str, Any]


class ToolError(Exception):
    """An error of a tool. The model gets its message; of other exceptions it gets the type and the message."""


class Result(Struct, frozen=True):
    """The return value of a tool: text, blocks (such as an image), or another value, which is encoded as JSON."""

    content: str | tuple[Block, ...] | Mapping[str, Any] | list[Any]
    error: bool = False


class PartForm(Struct, frozen=True):
    """A text that an allow rule may match. The rule must contain the `required` words: wildcards do not match them.

    A rule that names the program must contain the `operands` too (`git commit *`), one for all programs (`*`) need not.
    """

    text: str
    required: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()


class ApprovalScope(Struct, frozen=True):
    """More than one call that the user may allow at once: a few words, and the allow rules."""

    label: str
    rules: tuple[str, ...]


class ApprovalRequest(Struct, frozen=True):
    """A request for approval of a call. `subject` is what rules are matched against: a path, a command, a URL.

    `title` is one line, `detail` what a person needs for the decision (a diff, the whole command). If not `needed`, the
    user is asked only if an ask rule matches. `path` is the absolute path, if the subject is a path. `aliases` are
    other names of the subject for deny and ask rules. Each of `parts` has to be allowed, in one of its forms.
    `allowed_by` restricts the allow rules: any whose `pattern` matches, only rules for the whole `tool` or this exact
    subject, or only a rule with the exact subject (`name`).
    `changes` is False for a call that only reads: the mode `plan` does not deny it. `scopes` are wider than this call,
    the narrowest first; the user is offered those whose rules allow it.
    """

    tool: str
    subject: str
    title: str
    detail: str = ""
    needed: bool = True
    path: str = ""
    aliases: tuple[str, ...] = ()
    parts: tuple[tuple[PartForm, ...], ...] = ()
    allowed_by: Literal["pattern", "tool", "name"] = "pattern"
    changes: bool = True
    scopes: tuple[ApprovalScope, ...] = ()

    @property
    def is_edit(self) -> bool:
        """Whether it changes one file inside the working folder that is not guarded."""
        return bool(self.path) and self.changes and not self.subject.startswith("/") and self.allowed_by == "pattern"


class Denial(Struct, frozen=True):
    """A denial, with a reason that the model gets."""

    reason: str


class AllowRules(Struct, frozen=True):
    """The call is allowed, and for the rest of the session all that these rules match."""

    rules: tuple[str, ...]


ApprovalDecision: TypeAlias = Literal["once", "always", "no"] | Denial | AllowRules
Approver: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalDecision]]
"""Asks the user. `always` applies to this tool and subject for the rest of the session."""


class ChangeRecorder:
    """Records files before a call changes them, so that they can be restored. This one records nothing."""

    def before_write(self, path: Path, root: Path, data: bytes, mode: int, folders: Sequence[Path] = ()) -> None:
        """Record a file that is about to be written, with this mode.

        `path` is absolute and resolved, `root` the working folder; `folders` were created for it, the deepest first.
        """

    def before_command(self, command: str) -> Callable[[], None]:
        """Record the folder before a command that may change any file; call the returned function after it."""
        return lambda: None


async def _deny(request: ApprovalRequest) -> str | None:
    return f"denied: {request.title} needs approval"


@dataclass
class Context:
    """The context of a call. `progress` emits a line of progress to the user.

    `cancelled` is set when the call is cancelled or timed out; long-running tools check it. `is_granted` returns
    whether approval was given for what the tool is about to do, which may differ from the approval request: a link can
    change in between. `is_denied` returns whether a rule denies a path to a tool, both given by name. `time_limit` is
    the configured limit of a call in seconds, if any. `changes` records files before they are changed. A tool may need
    another approval while it runs: `is_allowed` returns whether the rules allow something, and `check_permission` asks
    the user if needed and returns None or the denial text. `approve` is the approver of the call.
    """

    folder: Path
    call_id: str = ""
    progress: Callable[[str], None] = lambda text: None
    cancelled: threading.Event = field(default_factory=threading.Event)
    is_granted: Callable[[ApprovalRequest], bool] = lambda request: True
    time_limit: float | None = None
    is_denied: Callable[[str, str], bool] = lambda tool, path: False
    changes: ChangeRecorder = field(default_factory=ChangeRecorder)
    approve: Approver | None = None
    is_allowed: Callable[[ApprovalRequest], bool] = lambda request: False
    check_permission: Callable[[ApprovalRequest], Awaitable[str | None]] = _deny


Run: TypeAlias = Callable[[Arguments, Context], "Result | str | Awaitable[Result | str]"]


def _no_paths(arguments: Arguments, folder: Path) -> Sequence[Path]:
    return ()


def _no_approval(arguments: Arguments, folder: Path) -> ApprovalRequest | None:
    return None


def _no_summary(arguments: Arguments) -> str:
    return ""


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call.

    `timeout` is the maximum time of a call in seconds. `timeout_mode` is how the user's limit applies: `outside`, the
    smaller of both counts; `inside`, the tool ends itself after `Context.time_limit`, which may be more than `timeout`;
    `own`, only `timeout` counts.

    `blocking` tools run in a thread and are abandoned on cancellation; others are coroutines and are cancelled.
    `writes` returns the files that a call changes: calls that change the same file run in call order.
    `approval_request` returns None, or a request that is not `needed`, for a call that neither changes files nor leaves
    the folder. `summarize` describes a call in a few words. `hidden_secrets` returns the secrets that are removed
    from the tool's environment (value → variable name); they are masked in the output of all tools.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run
    blocking: bool = True
    timeout: float | None = None
    timeout_mode: Literal["outside", "inside", "own"] = "outside"
    writes: Callable[[Arguments, Path], Sequence[Path]] = _no_paths
    approval_request: Callable[[Arguments, Path], ApprovalRequest | None] = _no_approval
    summarize: Callable[[Arguments], str] = _no_summary
    hidden_secrets: Callable[[], Mapping[str, str]] | None = None

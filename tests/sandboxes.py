"""The sandbox of shell commands for tests: with a real bubblewrap, or skipped, which the end of the run reports."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import Approver, Context, Result
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_sandbox import ShellSandbox, find_sandbox

_NO_SANDBOX = "no sandbox: "


def find_real(tmp_path: Path, *, has_network: bool = False) -> ShellSandbox:
    """The sandbox of this machine; the test is skipped where there is none."""
    found = find_sandbox(tmp_path / "temporary", has_network=has_network)
    if isinstance(found, str):
        pytest.skip(f"{_NO_SANDBOX}{found}")
    return found


def run_inside(
    sandbox: ShellSandbox, folder: Path, command: str, approve: Approver | None = None, **rules: Any
) -> tuple[str, bool]:
    """Run a command with the tool `shell`; return its result, and whether it is an error."""

    async def go() -> Result:
        box = Toolbox([shell(sandbox=sandbox)], folder, Permissions(folder=folder, **rules))
        tool = box.find("shell")
        assert tool is not None
        result: Any = tool.run({"command": command}, Context(folder, approve=approve))
        return await result

    result = asyncio.run(go())
    return str(result.content), result.error


def describe_skipped(reports: Iterable[Any]) -> list[str]:
    """A line for each reason why there was no sandbox, with the number of tests that were skipped for it."""
    reasons = Counter(
        reason.partition(_NO_SANDBOX)[2]
        for report in reports
        if isinstance(report.longrepr, tuple) and _NO_SANDBOX in (reason := str(report.longrepr[2]))
    )
    return [
        f"{count} test{'s' if count > 1 else ''} of the sandbox skipped: {reason}" for reason, count in reasons.items()
    ]

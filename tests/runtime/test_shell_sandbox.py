"""The sandbox of shell commands: with a real bubblewrap where it works, and with a strict stand-in everywhere."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import ApprovalDecision, ApprovalRequest, Context
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_sandbox import ShellSandbox, find_sandbox
from tests.sandboxes import find_real
from tests.sandboxes import run_inside as run

# Accepts only the options that segue uses, and fails as commands inside do: `prevented` writes outside.
STAND_IN = """#!{python}
import os, sys
VALUES = {{"--cap-drop": 1, "--ro-bind": 2, "--bind": 2, "--dev": 1, "--proc": 1, "--tmpfs": 1, "--chdir": 1}}
VALUES["--setenv"] = 2
FLAGS = {{"--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-net"}}
words, options = sys.argv[1:], []
while words[0] != "--":
    word = words.pop(0)
    count = VALUES.get(word, 0 if word in FLAGS else None)
    if count is None:
        sys.exit(f"bwrap: Unknown option {{word}}")
    options.append([word, *[words.pop(0) for _ in range(count)]])
wanted = [["--die-with-parent"], ["--unshare-pid"], ["--cap-drop", "ALL"], ["--ro-bind", "/", "/"]]
if any(option not in options for option in wanted):
    sys.exit("bwrap: an option is missing")
binds = [option[1:] for option in options if option[0] == "--bind"]
if any(source != target and target != "/tmp" for source, target in binds):
    sys.exit("bwrap: a folder is somewhere else")
command = words[1:]
if "prevented" in command[-1]:
    if not os.environ.get("IGNORED"):
        print("touch: cannot touch '/x': Read-only file system")
    sys.exit(1)
os.execvp(command[0], command)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("work", "temporary", "outside"):
        (tmp_path / name).mkdir()
    return tmp_path / "work"


@pytest.fixture
def stand_in(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ShellSandbox:
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    found = find_sandbox(tmp_path / "temporary")
    assert isinstance(found, ShellSandbox), found
    return found


class Answer:
    def __init__(self, answer: ApprovalDecision) -> None:
        self.answer: ApprovalDecision = answer
        self.questions: list[ApprovalRequest] = []

    async def __call__(self, question: ApprovalRequest) -> ApprovalDecision:
        self.questions.append(question)
        return self.answer


# ------------------------------------------------------------------------------------------------------------ stand-in


def test_command_that_is_prevented_is_offered_outside(stand_in: ShellSandbox, folder: Path) -> None:
    yes = Answer("once")
    text, error = run(stand_in, folder, "echo prevented", yes)
    assert (text.splitlines()[-1], error) == ("prevented", False)
    assert "failed in the sandbox (touch: cannot touch '/x': Read-only file system) and run again outside" in text
    [question] = yes.questions
    assert (question.tool, question.subject) == ("unsandboxed_shell", "echo prevented")
    assert "outside of the sandbox; it failed inside: touch: cannot touch '/x'" in question.title
    assert [scope.rules for scope in question.scopes] == [("unsandboxed_shell(echo *)",)]


def test_command_that_is_denied_outside_has_its_first_result(stand_in: ShellSandbox, folder: Path) -> None:
    text, error = run(stand_in, folder, "echo prevented", Answer("no"))
    assert error
    assert text.startswith("touch: cannot touch '/x': Read-only file system\n[exit code 1]\n[ran in a sandbox")
    assert "the user rejected this call" in text
    text, error = run(stand_in, folder, "echo prevented")
    assert 'allow = ["unsandboxed_shell(echo prevented)"]' in text


def test_other_failures_are_not_offered(stand_in: ShellSandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yes = Answer("once")
    assert run(stand_in, folder, "echo no such thing; exit 3", yes) == ("no such thing\n[exit code 3]", True)
    assert run(stand_in, folder, "echo Read-only file system", yes)[1] is False
    monkeypatch.setenv("IGNORED", "1")
    assert run(stand_in, folder, "echo prevented", yes) == ("[exit code 1]", True)
    assert yes.questions == []


def test_rule_runs_a_command_outside_at_once(stand_in: ShellSandbox, folder: Path) -> None:
    for rule in ("unsandboxed_shell(echo *)", "unsandboxed_shell", "*"):
        assert run(stand_in, folder, "echo prevented", allow=[rule]) == ("prevented", False)
    for rule in ("shell", "shell(echo *)", "unsandboxed_shell(git *)"):
        assert run(stand_in, folder, "echo prevented", allow=[rule])[1] is True
    denied = {"allow": ["*"], "deny": ["unsandboxed_shell(echo *)"]}
    text, error = run(stand_in, folder, "echo prevented", Answer("once"), **denied)
    assert error
    assert "the deny rule" in text


def test_wider_rule_outside_stays_safe(folder: Path) -> None:
    permissions = Permissions(allow=["unsandboxed_shell(git *)"], folder=folder)
    for command, action in (
        ("git log", "allow"),
        ("git push", "ask"),
        ("git push; rm x", "ask"),
        ("git -c core.pager=x log", "ask"),
        ("git log > x", "ask"),
    ):
        request = shell().approval_request({"command": command}, folder)
        assert request is not None
        assert permissions.decide(request)[0] == "ask"
        outside = ApprovalRequest(
            "unsandboxed_shell", request.subject, "", parts=request.parts, allowed_by=request.allowed_by
        )
        assert permissions.decide(outside)[0] == action, command


def test_command_line(folder: Path, tmp_path: Path) -> None:
    for name in (".git/hooks", ".vscode", "src/.git", "node_modules/x/.vscode"):
        (folder / name).mkdir(parents=True)
    for name in (".git/config", "src/.envrc", ".segue.toml", "mcp.json"):
        (folder / name).touch()
    (folder / ".mcp.json").symlink_to("mcp.json")
    sandbox = ShellSandbox("bwrap", tmp_path / "temporary")
    words = sandbox.wrap(["bash", "-c", "true"], folder)
    assert words[-4:] == ["--", "bash", "-c", "true"]
    assert "--unshare-net" in words
    options = " ".join(words)
    assert f"--bind {tmp_path}/temporary /tmp" in options
    assert f"--bind {folder} {folder}" in options
    protected = {words[n + 1] for n in range(len(words)) if words[n] == "--ro-bind" and str(folder) in words[n + 1]}
    names = (".git", ".vscode", ".segue.toml", "mcp.json", "src/.git", "src/.envrc")
    assert protected == {str(folder / name) for name in names}
    assert "--unshare-net" not in ShellSandbox("bwrap", tmp_path, has_network=True).wrap(["true"], folder)


def test_missing_or_broken_bubblewrap_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_sandbox(tmp_path) == (
        "bubblewrap (bwrap) is not installed" if sys.platform == "linux" else "bubblewrap is for Linux only"
    )
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    if sys.platform == "linux":
        reason = "bubblewrap does not work here: bwrap: No permissions to create new namespace"
        assert find_sandbox(tmp_path) == reason


# ---------------------------------------------------------------------------------------------------------------- real


@pytest.fixture
def server() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_writes_stay_in_the_folder(folder: Path, tmp_path: Path) -> None:
    sandbox = find_real(tmp_path)
    (folder / ".git" / "hooks").mkdir(parents=True)
    outside = tmp_path / "outside"
    assert run(sandbox, folder, "echo x > inside; echo y > /tmp/there; cat /tmp/there; pwd") == (f"y\n{folder}", False)
    assert (folder / "inside").read_text() == "x\n"
    assert run(sandbox, folder, "cat /tmp/there") == ("y", False)
    assert not Path("/tmp/there").exists()
    home = Path.home()
    for place, real in ((Path("/tmp/none"), outside), (home, home), (Path(f"/proc/1/root{home}"), home)):
        text, error = run(sandbox, folder, f"touch '{place}/segue-test'")
        assert error
        assert "[ran in a sandbox" in text
        assert not (real / "segue-test").exists()
    assert run(sandbox, folder, "touch .git/hooks/segue-test")[1]
    assert list((folder / ".git/hooks").iterdir()) == []
    assert run(sandbox, folder, "cat /etc/passwd > copy") == ("[no output; exit code 0]", False)


def test_run_without_a_sandbox_says_how_many_tests_were_skipped(tmp_path: Path) -> None:
    test = f"{__file__}::{test_writes_stay_in_the_folder.__name__}"
    options = ("-p", "no:cacheprovider", "-p", "no:inline_snapshot", "-p", "no:xdist")
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, test],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    line, closing = ended.stdout.splitlines()[-2:]
    assert line == "1 test of the sandbox skipped: " + (
        "bubblewrap (bwrap) is not installed" if sys.platform == "linux" else "bubblewrap is for Linux only"
    )
    assert closing.strip("= ").startswith("1 skipped in ")


def test_exit_codes_signals_and_background_processes(folder: Path, tmp_path: Path) -> None:
    sandbox = find_real(tmp_path)
    assert run(sandbox, folder, "exit 7") == ("[exit code 7]", True)
    assert run(sandbox, folder, "kill -TERM $$")[1] is True
    assert run(sandbox, folder, "setsid sleep 1000 & nohup sleep 1000 & echo started") == ("started", False)
    text, _ = run(sandbox, folder, "ls /proc | grep -c '^[0-9]'; kill -0 -1")
    assert int(text.split()[0]) < 10


def test_network_is_off(folder: Path, tmp_path: Path, server: int) -> None:
    sandbox = find_real(tmp_path)
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{server} && echo connected"
    text, error = run(sandbox, folder, connect)
    assert error
    assert "not run again outside" in text
    assert run(sandbox, folder, connect, Answer("once"))[0].splitlines()[-1] == "connected"
    networked = find_real(tmp_path, has_network=True)
    assert run(networked, folder, connect) == ("connected", False)


def test_cancelled_command_ends_inside(folder: Path, tmp_path: Path) -> None:
    sandbox = find_real(tmp_path)

    async def go() -> None:
        call: Any = shell(sandbox=sandbox).run({"command": "echo $$ > pid; sleep 1000"}, Context(folder))
        running = asyncio.ensure_future(call)
        while not (folder / "pid").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(go())

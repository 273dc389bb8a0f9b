"""Wider scopes of an approval, the rules that they add, and the permission modes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import AllowRules, ApprovalDecision, ApprovalRequest, Tool
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools.fetch import fetch_url
from segue.runtime.tools.read import list_dir, read_file
from segue.runtime.tools.shell import shell
from segue.runtime.tools.task import task
from segue.runtime.tools.todo import todo
from segue.runtime.tools.write import edit_file, write_file


class Chooser:
    """Picks the scope with a number, 0 for «once», and records the questions."""

    def __init__(self, *choices: int) -> None:
        self._choices = list(choices)
        self.questions: list[ApprovalRequest] = []

    async def __call__(self, question: ApprovalRequest) -> ApprovalDecision:
        self.questions.append(question)
        choice = self._choices.pop(0)
        return AllowRules(question.scopes[choice - 1].rules) if choice else "once"

    @property
    def labels(self) -> list[str]:
        return [scope.label for scope in self.questions[-1].scopes]


def request(tool: Tool, folder: Path, **arguments: Any) -> ApprovalRequest:
    found = tool.approval_request(arguments, folder)
    assert found is not None
    return found


def command(text: str, folder: Path) -> ApprovalRequest:
    return request(shell(), folder, command=text)


def check(permissions: Permissions, question: ApprovalRequest, approver: Chooser | None) -> str | None:
    return asyncio.run(permissions.check(question, approver))


# --------------------------------------------------------------------------------------------------------------- shell


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("git log --oneline", ["git log *", "git *"]),
        ("timeout 5 git status", ["git status *", "git *"]),
        ("git add a && git commit -m x", ["git add *, git commit *"]),
        ("pytest -q tests", ["pytest *"]),
        ("./run-checks fast", ["./run-checks *"]),
        ("git log | head -3", ["git log *, head *", "git *, head *"]),
        # Not matched by a wildcard, so a rule with one would not allow them.
        ("git -c core.pager=x log", []),
        ("git log --output=x", []),
        ("git config user.name x", []),
        ("sort -o x y", []),
        # Programs that run any code, delete, or act elsewhere.
        ("rm -rf build", []),
        ("git log; rm -rf build", []),
        ("bash run.sh", []),
        ("python3.12 x.py", []),
        ("sudo git log", []),
        ("curl https://example.com", []),
        ("cd x && git log", []),
        ("env X=1 git log", []),
        ("X=1 git log", []),
        ("xargs git log", []),
        ("npx tsc", []),
        ("uv run pytest", []),
        # Not a list of simple commands.
        ("git log > x", []),
        ("git log $(cat x)", []),
        ("if true; then git log; fi", []),
        ("$PROGRAM log", []),
        ("git $COMMAND", []),
        ("a; b; c; d", []),
    ],
)
def test_scopes_of_a_command(text: str, labels: list[str], tmp_path: Path) -> None:
    chooser = Chooser(0)
    assert check(Permissions(folder=tmp_path), command(text, tmp_path), chooser) is None
    assert chooser.labels == labels


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("git status", True),
        ("git", True),
        ("git push origin main", False),
        ("git log | git shortlog", True),
        ("timeout 5 git log", True),
        ("git status; rm -rf x", False),
        ("git status && rm -rf x", False),
        ("git status & rm -rf x", False),
        ("git status | sh", False),
        ("git status\nrm -rf x", False),
        ("git status $(rm -rf x)", False),
        ("git status `rm -rf x`", False),
        ("git status > x", False),
        ("git -c core.pager='rm -rf x' log", False),
        ("git -C /elsewhere status", False),
        ("git --git-dir=/x log", False),
        ("git --exec-path=/x log", False),
        ("git log --output=x", False),
        ("git diff --ext-diff", False),
        ("git grep -O'rm -rf x' a", False),
        ("git config core.pager x", False),
        ("git bisect run rm x", False),
        ("git rebase -x 'rm x'", False),
        ("git submodule foreach rm x", False),
        ("GIT_PAGER='rm -rf x' git log", False),
        ("sudo git status", False),
        ("xargs git status", False),
        ("git fetch ext::sh", False),
        ("git log {--output=a,b}", False),
        ("git log $X-c", False),
        ("gitk", False),
        ("/tmp/git status", False),
    ],
)
def test_all_of_git_stays_safe(text: str, is_allowed: bool, tmp_path: Path) -> None:
    permissions = Permissions(folder=tmp_path)
    chooser = Chooser(2)
    assert check(permissions, command("git log --oneline", tmp_path), chooser) is None
    assert permissions.list_rules() == [("allow (this chat)", "shell(git *)")]
    assert permissions.decide(command(text, tmp_path))[0] == ("allow" if is_allowed else "ask")


def test_wider_rule_does_not_override_a_rule_that_asks_or_denies(tmp_path: Path) -> None:
    permissions = Permissions(ask=["shell(git push *)"], deny=["shell(git reset *)"], folder=tmp_path)
    chooser = Chooser(2, 0)
    assert check(permissions, command("git log", tmp_path), chooser) is None
    assert check(permissions, command("git status", tmp_path), None) is None
    assert check(permissions, command("git push", tmp_path), chooser) is None
    assert chooser.labels == []
    assert "the deny rule" in (check(permissions, command("git reset --hard", tmp_path), chooser) or "")
    assert len(chooser.questions) == 2


# --------------------------------------------------------------------------------------------------------------- files


def write(path: str, folder: Path) -> ApprovalRequest:
    return request(write_file(), folder, path=path, content="x")


def edit(path: str, folder: Path) -> ApprovalRequest:
    return request(edit_file(), folder, path=path, old_string="x", new_string="y")


def test_scopes_of_an_edit(tmp_path: Path) -> None:
    permissions = Permissions(folder=tmp_path)
    chooser = Chooser(1, 1)
    assert check(permissions, write("src/a/x.py", tmp_path), chooser) is None
    assert chooser.labels == ["edits below src/a/", "all edits in this chat"]
    assert check(permissions, edit("src/a/deep/y.py", tmp_path), None) is None
    assert permissions.decide(write("src/b.py", tmp_path))[0] == "ask"
    assert check(permissions, write("top.py", tmp_path), chooser) is None
    assert chooser.labels == ["all edits in this chat"]
    assert permissions.decide(edit("any/where.py", tmp_path))[0] == "allow"
    outside = str(tmp_path.parent / "outside.txt")
    for path in (outside, ".git/hooks/post-commit", ".segue.toml", ".vscode/tasks.json"):
        assert permissions.decide(write(path, tmp_path))[0] == "ask"


def test_guarded_file_has_no_wider_scope(tmp_path: Path) -> None:
    chooser = Chooser(0)
    assert check(Permissions(folder=tmp_path), write(".git/config", tmp_path), chooser) is None
    assert chooser.labels == []


def test_always_covers_a_file_for_both_tools(tmp_path: Path) -> None:
    async def always(_: ApprovalRequest) -> ApprovalDecision:
        return "always"

    permissions = Permissions(folder=tmp_path)
    assert asyncio.run(permissions.check(write("a[1].py", tmp_path), always)) is None
    assert permissions.decide(edit("a[1].py", tmp_path))[0] == "allow"
    assert permissions.decide(edit("a1.py", tmp_path))[0] == "ask"


def test_scopes_of_reading_outside_and_of_addresses(tmp_path: Path) -> None:
    permissions = Permissions(folder=tmp_path / "work")
    outside = tmp_path / "other"
    chooser = Chooser(1, 1)
    assert check(permissions, request(read_file(), tmp_path / "work", path=str(outside / "x")), chooser) is None
    assert chooser.labels == [f"read_file below {outside}/"]
    assert permissions.decide(request(read_file(), tmp_path / "work", path=str(outside / "y")))[0] == "allow"
    assert permissions.decide(request(list_dir(), tmp_path / "work", path=str(outside)))[0] == "ask"
    fetch = fetch_url(look_up=lambda *_: ("93.184.216.34",))
    assert check(permissions, request(fetch, tmp_path, url="https://example.com/a/b?c"), chooser) is None
    assert chooser.labels == ["all of https://example.com"]
    assert permissions.decide(request(fetch, tmp_path, url="https://example.com/d"))[0] == "allow"
    assert permissions.decide(request(fetch, tmp_path, url="https://example.com.evil.org/"))[0] == "ask"


# --------------------------------------------------------------------------------------------------------------- modes


def test_mode_edits_allows_edits_inside_the_folder_only(tmp_path: Path) -> None:
    permissions = Permissions(folder=tmp_path, deny=["write_file(secret/*)"], ask=["edit_file(docs/*)"])
    permissions.mode = "edits"
    for question, action in (
        (write("a.py", tmp_path), "allow"),
        (edit("deep/b.py", tmp_path), "allow"),
        (write("secret/x", tmp_path), "deny"),
        (edit("docs/x", tmp_path), "ask"),
        (write(str(tmp_path.parent / "x"), tmp_path), "ask"),
        (write(".git/config", tmp_path), "ask"),
        (command("touch x", tmp_path), "ask"),
        (ApprovalRequest("server__tool", "{}", ""), "ask"),
    ):
        assert permissions.decide(question)[0] == action, question.title


def test_mode_plan_changes_nothing_whatever_is_allowed(tmp_path: Path) -> None:
    permissions = Permissions(folder=tmp_path, allow=["*"])
    permissions.mode = "plan"
    chooser = Chooser()
    for question in (
        write("a.py", tmp_path),
        edit("a.py", tmp_path),
        command("ls", tmp_path),
        ApprovalRequest("server__tool", "{}", ""),
    ):
        assert "plan mode is on" in (check(permissions, question, chooser) or ""), question.title
    for question in (
        request(read_file(), tmp_path, path="a.py"),
        request(read_file(), tmp_path, path=str(tmp_path.parent / "x")),
        ApprovalRequest("fetch_url", "https://example.com/", "", changes=False),
    ):
        assert permissions.decide(question)[0] == "allow"
    permissions.mode = "ask"
    assert permissions.decide(write("a.py", tmp_path))[0] == "allow"
    assert chooser.questions == []


def test_reading_tools_declare_that_they_change_nothing(tmp_path: Path) -> None:
    assert not request(read_file(), tmp_path, path="/etc/hosts").changes
    assert not request(list_dir(), tmp_path, path="/etc").changes
    assert not request(fetch_url(), tmp_path, url="https://127.0.0.1/").changes
    assert todo().approval_request({}, tmp_path) is None

    async def spawn(*_: Any) -> Any:
        raise NotImplementedError

    assert task(spawn).approval_request({"description": "x", "prompt": "x"}, tmp_path) is None


# ----------------------------------------------------------------------------------------------------- rules by command


def test_rules_of_a_session_are_validated(tmp_path: Path) -> None:
    box = Toolbox([write_file(), shell()], tmp_path)
    box.allow("shell(git log *)")
    box.allow(f"write_file({tmp_path}/docs/*)")
    box.allow("unsandboxed_shell(git push *)")
    assert box.permissions.decide(command("git log -3", tmp_path))[0] == "allow"
    assert box.permissions.decide(write("docs/a.md", tmp_path))[0] == "allow"
    for wrong in ("shel(git log *)", "shell(", "nope"):
        with pytest.raises(InputError):
            box.allow(wrong)
    assert len(box.permissions.list_rules()) == 3

"""What a command in the sandbox may try, so that a program outside does something for it: a real bubblewrap.

A repository stands in the folder. After each attempt, programs run outside in it as a user would run them, and none of
them may have started the attacker's `canary`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue.cli import project_context
from segue.runtime.tool_types import Context
from segue.runtime.tools import guarded_paths, shell_sandbox
from segue.runtime.tools.guarded_paths import GuardedPaths
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_sandbox import ShellSandbox
from tests.sandboxes import find_real, run_inside

CONFIG = """[core]
    repositoryformatversion = 0
    hooksPath = {canaries}
    fsmonitor = {canary}
    pager = {canary}
    editor = {canary}
    sshCommand = {canary}
    gitProxy = {canary}
    askPass = {canary}
    alternateRefsCommand = {canary}
[filter "evil"]
    clean = {canary}
    smudge = {canary}
    process = {canary}
    required = true
[diff]
    external = {canary}
[diff "evil"]
    command = {canary}
    textconv = {canary}
[merge "evil"]
    driver = {canary}
[credential]
    helper = {canary}
[gpg]
    program = {canary}
[log]
    showSignature = true
[status]
    submoduleSummary = true
[alias]
    status = !{canary}
    log = !{canary}
[include]
    path = {folder}/more
[remote "origin"]
    url = ext::{canary}
    promisor = true
    partialCloneFilter = blob:none
    uploadpack = {canary}
[pager]
    status = {canary}
    log = {canary}
"""


class Outside:
    """A folder with a repository, a nested one, and a program outside that must never run."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "work"
        self.seen = base / "seen"
        self.canaries = base / "canaries"
        self.canaries.mkdir()
        self.canary = self.canaries / "canary"
        self.canary.write_text(f"#!/bin/sh\necho $0 >> {self.seen}\ncat\n")
        self.canary.chmod(0o755)
        for hook in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction"):
            (self.canaries / hook).symlink_to("canary")
        self.config = CONFIG.format(canary=self.canary, canaries=self.canaries, folder=base)
        (base / "evil.config").write_text(self.config)
        (base / "more").write_text(f"[core]\n    fsmonitor = {self.canary}\n")
        self.make_repository(self.folder)

    def git(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        identity = {
            f"GIT_{role}_{what}": "x@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **identity, "HOME": str(self.base), "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def make_repository(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "file.txt").write_text("one\n")
        for arguments in (("init", "-qb", "main"), ("add", "."), ("commit", "-qm", "First")):
            ended = self.git(folder, *arguments)
            assert ended.returncode == 0, ended.stderr

    def use(self) -> None:
        """Run what a user runs later: git in all folders that may be a repository, and the context of `segue run`."""
        for folder, folders, files in os.walk(self.folder, topdown=False):
            is_searched = folder == str(self.folder) or {".git", "HEAD", "objects"}.intersection([*folders, *files])
            if is_searched and ".git" not in Path(folder).parts:
                (Path(folder) / "file.txt").write_text(f"changed {os.urandom(4).hex()}\n")
                for arguments in (("status",), ("add", "file.txt"), ("commit", "-m", "x")):
                    self.git(Path(folder), *arguments)
        project_context.take(self.folder, trusting=True)

    @property
    def has_run(self) -> str:
        return self.seen.read_text() if self.seen.exists() else ""


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


@pytest.fixture
def sandbox(outside: Outside) -> ShellSandbox:
    """A sandbox in whose /tmp the attacker has a configuration and hooks."""
    found = find_real(outside.base)
    found.temporary.mkdir()
    shutil.copytree(outside.canaries, found.temporary / "canaries")
    shutil.copy(outside.base / "evil.config", found.temporary)
    return found


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder that is not in /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        monkeypatch.setenv("HOME", name)
        yield Path(name)


def list_guarded(folder: Path) -> dict[str, bytes]:
    """The files of `.git` and of the other guarded names in a folder, with their contents."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part in (".git", ".envrc", ".vscode", ".husky") for part in Path(name).parts) and path.is_file():
            found[name] = path.read_bytes()
    return found


# ----------------------------------------------------------------------------------------------- repositories and names

PYTHON = Path(sys.executable).resolve()
# `G` is the folder that becomes a repository; what the attacker needs is in /tmp.
EVIL = (
    "cp /tmp/evil.config $G/config; mkdir -p $G/info; echo '* filter=evil' > $G/info/attributes"
    "; mkdir -p $G/hooks; cp /tmp/canaries/* $G/hooks"
)
BARE = f"{EVIL}; git config -f $G/config core.worktree $PWD/$G"
EXCHANGE = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'copy', -100, b'.git', 2)"
ATTEMPTS = {
    "config": f"G=.git; {EVIL}",
    "moved": f"mv .git old; cp -r old .git; G=.git; {EVIL}",
    "removed": f"cp -r .git copy; rm -rf .git; mv copy .git; G=.git; {EVIL}",
    "exchanged": f'cp -r .git copy; G=copy; {EVIL}; {PYTHON} -c "{EXCHANGE}"',
    "commondir": f"cp -r .git copy; G=copy; {EVIL}; echo ../copy > .git/commondir",
    "new hook": "cp /tmp/canaries/canary .git/hooks/pre-commit",
    "new hooks": "mv .git/hooks .git/old; mkdir .git/hooks; cp /tmp/canaries/* .git/hooks",
    "attributes": "echo '* filter=evil' > .git/info/attributes; git config filter.evil.clean /tmp/canaries/canary",
    "git config": "git config core.fsmonitor /tmp/canaries/canary; git config --worktree core.fsmonitor x",
    "rebase": "mkdir .git/rebase-merge; echo 'exec /tmp/canaries/canary' > .git/rebase-merge/git-rebase-todo",
    "new": f"mkdir sub; cp -r .git sub/.git; G=sub/.git; {EVIL}",
    "deep": f"mkdir -p a/b/c/d/e/f; cp -r .git a/b/c/d/e/f/.git; G=a/b/c/d/e/f/.git; {EVIL}",
    "another name": f"cp -r .git sub; G=sub; {BARE}",
    "git file": f"mkdir sub; cp -r .git data; G=data; {EVIL}; echo 'gitdir: ../data' > sub/.git",
    "git link": f"mkdir sub; cp -r .git data; G=data; {EVIL}; ln -s ../data sub/.git",
    "unlistable": f"mkdir sub; cp -r .git sub/.git; G=sub/.git; {EVIL}; chmod 111 sub",
    "read-only": f"mkdir sub; cp -r .git sub/.git; G=sub/.git; {EVIL}; chmod 555 sub",
    "packages": f"mkdir -p node_modules/x; cp -r .git node_modules/x/.git; G=node_modules/x/.git; {EVIL}",
    "guarded folder": f"mkdir -p .vscode/x; cp -r .git .vscode/x/.git; G=.vscode/x/.git; {EVIL}",
    "common folder": "mkdir own sub; cp .git/HEAD .git/index own; echo ../data > own/commondir; cp -r .git data"
    f"; G=data; {EVIL}; echo 'gitdir: ../own' > sub/.git",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_program_of_a_changed_repository_runs_later(attempt: str, outside: Outside, sandbox: ShellSandbox) -> None:
    before = list_guarded(outside.folder)
    text, _ = run_inside(sandbox, outside.folder, ATTEMPTS[attempt])
    assert {name: data for name, data in list_guarded(outside.folder).items() if name.startswith(".git/")} == before, (
        text
    )
    outside.use()
    assert outside.has_run == "", text


NEW_NAMES = (
    ".envrc .vscode/tasks.json .claude/settings.json .git/hooks/x .gitattributes .gitmodules .githooks/pre-commit"
    " .bashrc .segue.toml sub/.envrc a/b/c/.vscode/tasks.json .github/workflows/x.yml sub/.git .husky/pre-commit"
    " .mcp.json x.code-workspace .EnvRC"
)


@pytest.mark.parametrize("name", NEW_NAMES.split())
def test_guarded_name_that_did_not_exist(name: str, outside: Outside, sandbox: ShellSandbox) -> None:
    command = f"mkdir -p $(dirname {name}); echo x > {name}"
    text, error = run_inside(sandbox, outside.folder, command)
    assert error
    assert not (outside.folder / name).exists()
    assert "Read-only file system" in text if name.startswith(".git/") else "segue-moved-" in text
    assert 'allow = ["unsandboxed_shell' in text


def test_new_name_by_a_link_and_by_renaming_a_folder(outside: Outside, sandbox: ShellSandbox) -> None:
    command = "echo x > plain; ln -s plain .envrc; mkdir -p v/workflows; echo x > v/workflows/x.yml; mv v .github"
    text, error = run_inside(sandbox, outside.folder, command)
    assert error
    assert not os.path.lexists(outside.folder / ".envrc")
    assert not (outside.folder / ".github/workflows").exists()
    assert (outside.folder / "plain").read_text() == "x\n"
    assert ".envrc (now segue-moved-" in text


def test_existing_names_in_subfolders(outside: Outside, sandbox: ShellSandbox) -> None:
    for name in ("sub/.envrc", "sub/.vscode/tasks.json", "a/b/.envrc"):
        (outside.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (outside.folder / name).write_text("good\n")
    outside.make_repository(outside.folder / "nested")
    before = list_guarded(outside.folder)
    for command in (
        "echo x > sub/.envrc",
        "echo x > sub/new; mv -f sub/new sub/.envrc",
        "rm -rf sub/.envrc",
        "rm -rf sub/.vscode; mkdir sub/.vscode; echo x > sub/.vscode/tasks.json",
        "ln sub/.envrc other && echo x > other",
        "cp /tmp/canaries/canary nested/.git/hooks/pre-commit",
        "echo x > nested/.git/config",
    ):
        assert run_inside(sandbox, outside.folder, command)[1], command
        assert list_guarded(outside.folder) == before, command


def test_rename_of_a_folder_above_a_guarded_name(outside: Outside, sandbox: ShellSandbox) -> None:
    outside.make_repository(outside.folder / "nested")
    (outside.folder / "nested/.envrc").write_text("good\n")
    command = "mv nested other; cp -r other nested; cp /tmp/evil.config nested/.git/config; echo x > nested/.envrc"
    text, error = run_inside(sandbox, outside.folder, command)
    assert error
    assert "nested/.git (now segue-moved-" in text
    assert not (outside.folder / "nested/.git").exists()
    assert not (outside.folder / "nested/.envrc").exists()
    assert (outside.folder / "other/.envrc").read_text() == "good\n"
    outside.use()
    assert outside.has_run == ""


def test_guarded_names_that_are_links(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder
    for name in ("envs/dev", "editor/tasks.json", "scripts/check", "scripts/chain"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("good\n")
    (folder / ".envrc").symlink_to("envs/dev")
    (folder / ".vscode").symlink_to("editor")
    (folder / ".husky").mkdir()
    (folder / ".husky/pre-commit").symlink_to("../scripts/check")
    (folder / "step").symlink_to("scripts/chain")
    (folder / ".husky/pre-push").symlink_to("../step")
    (folder / ".husky/post-merge").symlink_to("../scripts/missing")
    for command in (
        "echo x > envs/dev",
        "mv envs/dev envs/old; echo x > envs/dev",
        "mv envs e; mkdir envs; echo x > envs/dev",
        "rm .envrc; echo x > .envrc",
        "ln -sfn file.txt .envrc",
        "echo x > editor/tasks.json",
        "mv editor e; mkdir editor; echo x > editor/tasks.json",
        "rm .vscode; mkdir .vscode; echo x > .vscode/tasks.json",
        "echo x > scripts/check",
        "ln -sfn file.txt step",
        "echo x > scripts/missing",
    ):
        copy = outside.base / "copy"
        shutil.copytree(folder, copy, symlinks=True)
        text, error = run_inside(sandbox, copy, command)
        assert error, command
        for name in (".envrc", ".vscode/tasks.json", ".husky/pre-commit", ".husky/pre-push", ".husky/post-merge"):
            assert not (copy / name).exists() or (copy / name).read_text() == "good\n", (command, name, text)
        shutil.rmtree(copy)


def test_more_guarded_names_than_can_be_mounted(outside: Outside, sandbox: ShellSandbox) -> None:
    for number in range(150):
        package = outside.folder / f"packages/{number}"
        (package / ".vscode").mkdir(parents=True)
        for name in (".npmrc", ".vscode/tasks.json"):
            (package / name).write_text("good\n")
    command = "for p in packages/*; do echo x >> $p/.npmrc; echo x >> $p/.vscode/tasks.json; echo x > $p/code; done"
    assert run_inside(sandbox, outside.folder, command)[1]
    for number in range(150):
        package = outside.folder / f"packages/{number}"
        for name in (".npmrc", ".vscode/tasks.json"):
            assert not (package / name).exists() or (package / name).read_text() == "good\n"
        assert (package / "code").exists()
    assert run_inside(sandbox, outside.folder, "touch packages/1/code") == ("[no output; exit code 0]", False)


def test_guarded_name_that_is_not_mounted_moves_to_another(outside: Outside, sandbox: ShellSandbox) -> None:
    for number in range(110):
        (outside.folder / f"packages/{number}").mkdir(parents=True)
        (outside.folder / f"packages/{number}/.npmrc").write_text("good\n")
    (outside.folder / "packages/z/deep/.vscode").mkdir(parents=True)
    (outside.folder / "packages/z/deep/.vscode/tasks.json").write_text("good\n")
    for command, name in (
        ("for p in packages/*; do mv $p/.npmrc .envrc && break; done; echo x > .envrc", ".envrc"),
        ("mv packages/z/deep/.vscode .vscode && echo x > .vscode/tasks.json", ".vscode"),
        ("mv packages/z/deep sub && echo x > sub/.vscode/tasks.json", "sub/.vscode"),
    ):
        copy = outside.base / "copy"
        shutil.copytree(outside.folder, copy, symlinks=True)
        text, error = run_inside(sandbox, copy, command)
        assert error, command
        assert not os.path.lexists(copy / name), (command, text)
        shutil.rmtree(copy)


def test_name_that_is_guarded_in_one_folder_gets_that_folder(outside: Outside, sandbox: ShellSandbox) -> None:
    for name in ("template/.github/workflows/x.yml", "examples/mise/config.toml"):
        (outside.folder / name).parent.mkdir(parents=True)
        (outside.folder / name).write_text("good\n")
    for command, name in (
        ("mv template/.github .github", ".github/workflows"),
        ("mv examples/mise mise", "mise/config.toml"),
    ):
        assert run_inside(sandbox, outside.folder, command)[1], command
        assert not (outside.folder / name).exists(), command


LINKED = {
    "packages": ("mkdir -p node_modules/docs/.vscode; touch node_modules/docs/.vscode/tasks.json", "node_modules/docs"),
    "environment": ("mkdir -p venv/docs/.vscode; touch venv/docs/.vscode/tasks.json", "$PWD/venv/docs"),
    "later": ("true", "node_modules/docs"),
    "temporary": ("mkdir -p /tmp/docs", "$HOST/docs"),
    "temporary later": ("true", "$HOST/docs"),
    "process": ("mkdir -p node_modules/docs", "/proc/self/cwd/node_modules/docs"),
    "chain": ("ln -s node_modules one; mkdir -p node_modules/docs", "one/docs"),
    "from packages": ("mkdir -p node_modules /tmp/docs; ln -s $HOST/docs node_modules/docs", "node_modules/docs"),
}


@pytest.mark.parametrize("attempt", LINKED)
def test_link_to_a_folder_that_is_not_searched(attempt: str, outside: Outside, sandbox: ShellSandbox) -> None:
    prepare, target = LINKED[attempt]
    text, error = run_inside(
        sandbox, outside.folder, f"HOST={sandbox.temporary}; {prepare}; mkdir deep; ln -s {target} docs"
    )
    assert error
    assert "docs (now segue-moved-" in text
    assert not os.path.lexists(outside.folder / "docs")
    assert not (outside.folder / "node_modules/docs").is_symlink()


@pytest.mark.parametrize("name", ["docs", "segue-moved-docs"])
def test_renamed_link_is_not_renamed_again(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "node_modules/docs").mkdir(parents=True)
    before = GuardedPaths.find(folder)
    (folder / name).symlink_to("node_modules/docs")
    renamed = before.move_new(tmp_path / "temporary")
    assert [line.partition(" ")[0] for line in renamed] == [name][: name == "docs"]
    assert len([path for path in folder.iterdir() if path.name.startswith("segue-moved-")]) == 1


def test_link_of_a_guarded_chain_leads_out_of_the_folder(outside: Outside, sandbox: ShellSandbox) -> None:
    (outside.folder / "good").write_text("good\n")
    (outside.folder / "step").symlink_to("good")
    (outside.folder / ".husky").mkdir()
    (outside.folder / ".husky/pre-push").symlink_to("../step")
    assert run_inside(sandbox, outside.folder, f"touch /tmp/evil; ln -sfn {sandbox.temporary}/evil step")[1]
    assert not (outside.folder / ".husky/pre-push").exists()


@pytest.mark.parametrize("pair", ["mise/config.toml", ".github/workflows", ".yarn/releases", ".config/git"])
def test_link_gives_a_folder_the_name_that_guards_what_is_in_it(
    pair: str, outside: Outside, sandbox: ShellSandbox
) -> None:
    folder, name = pair.split("/")
    link = f"ln -s $PWD/other sub/{folder}"
    for command in (f"mkdir -p sub other/{name}; ln -s other {folder}", f"ln -s other {folder}", link):
        text, error = run_inside(sandbox, outside.folder, command)
        assert error
        assert "(now segue-moved-" in text
        assert not os.path.lexists(outside.folder / pair)
        assert not os.path.lexists(outside.folder / "sub" / pair)
    (outside.folder / folder).symlink_to("other")
    assert run_inside(sandbox, outside.folder, f"echo x > other/{name}x; mkdir other/{name}x")[1]
    assert not os.path.lexists(outside.folder / f"{pair}x")


def test_links_of_ordinary_work(outside: Outside, sandbox: ShellSandbox, elsewhere: Path) -> None:
    (outside.folder / "node_modules/docs").mkdir(parents=True)
    (outside.folder / "docs").symlink_to("node_modules/docs")
    for command in (
        "mkdir -p src/lib node_modules/.store/a; ln -s src/lib lib; ln -s .store/a node_modules/a",
        "ln -s ../src/lib node_modules/lib; ln -s ../../src/missing node_modules/a/b",
        f"ln -s {elsewhere} data; ln -s node_modules/tool tool; rm tool; touch node_modules/x; ln -s node_modules/x x",
        f"{PYTHON} -m venv --without-pip .venv",
        "mkdir bin; echo x > bin/tool; ln -s bin/tool mise; ln -s ../file.txt node_modules/.github",
        "rm -r node_modules/docs; mkdir node_modules/docs; ls docs",
    ):
        text, error = run_inside(sandbox, outside.folder, command)
        assert not error, (command, text)


def test_other_names_of_a_guarded_file(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder
    (folder / ".envrc").write_text("good\n")
    (folder / "deep").mkdir()
    os.link(folder / ".envrc", folder / "deep/alias")
    os.link(folder / ".git/config", folder / "alias")
    config = (folder / "alias").read_bytes()
    for name in ("deep/alias", "alias"):
        assert run_inside(sandbox, folder, f"echo x > {name}")[1]
        assert run_inside(sandbox, folder, f"ln {name} more && echo x > more")[1]
    assert (folder / ".envrc").read_text() == "good\n"
    assert (folder / ".git/config").read_bytes() == config


def test_programs_that_the_configuration_names(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder
    (folder / "tools").mkdir()
    (folder / "tools/clean").write_text("good\n")
    outside.git(folder, "config", "core.hooksPath", "checks")
    outside.git(folder, "config", "filter.x.clean", "sh tools/clean %f")
    outside.git(folder, "config", "include.path", "../tools/settings")
    assert run_inside(sandbox, folder, "echo x > tools/settings")[1]
    assert not (folder / "tools/settings").exists()
    assert run_inside(sandbox, folder, "echo x > tools/clean")[1]
    assert run_inside(sandbox, folder, "mkdir checks; echo x > checks/pre-commit")[1]
    assert (folder / "tools/clean").read_text() == "good\n"
    assert not (folder / "checks").exists()
    assert run_inside(sandbox, folder, "echo x > tools/other") == ("[no output; exit code 0]", False)


PATH_ATTEMPTS = {
    "new program": "cp /tmp/canaries/canary .venv/bin/git",
    "new folder": "mkdir bin; cp /tmp/canaries/canary bin/git",
    "renamed folder": "mv .venv old; mkdir -p .venv/bin; cp /tmp/canaries/canary .venv/bin/git",
    "link": "mkdir x; cp /tmp/canaries/canary x/git; ln -s x bin",
    "changed link": "mkdir x; cp /tmp/canaries/canary x/git; ln -sfn x tools",
    "target of a link": "cp /tmp/canaries/canary real/git",
}


@pytest.mark.parametrize("attempt", PATH_ATTEMPTS)
def test_programs_that_are_found_by_path(
    attempt: str, outside: Outside, sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = outside.folder
    for name in (".venv/bin", "real"):
        (folder / name).mkdir(parents=True)
    (folder / "tools").symlink_to("real")
    own = [str(folder / name) for name in (".venv/bin", "bin", "tools")]
    monkeypatch.setenv("PATH", os.pathsep.join([*own, ".", "", os.environ["PATH"]]))
    text, error = run_inside(sandbox, folder, PATH_ATTEMPTS[attempt])
    assert error, text
    outside.use()
    assert outside.has_run == "", text
    assert run_inside(sandbox, folder, "mkdir -p src/bin .venv/lib; touch src/bin/git .venv/lib/x")[1] is False


def test_folder_of_path_can_not_be_written(
    outside: Outside, sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (outside.base / "bin").mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join([str(outside.base / "bin"), os.environ["PATH"]]))
    assert run_inside(sandbox, outside.base / "bin", "cp /tmp/canaries/canary git")[1]
    assert list((outside.base / "bin").iterdir()) == []


def test_segue_itself_and_programs_that_it_starts(
    outside: Outside, sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = outside.folder
    for name in ("env/lib/module.py", "tools/server.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("good\n")
    monkeypatch.setattr(guarded_paths, "_OWN_FOLDERS", (str(folder / "env"),))
    served = msgspec.structs.replace(sandbox, programs=(folder / "tools/server.py", folder / "tools/later.py"))
    for command in ("echo x > env/lib/module.py", "echo x > env/lib/new.pth", "echo x > tools/server.py"):
        text, error = run_inside(served, folder, command)
        assert error, text
        assert "Read-only file system" in text
    assert run_inside(served, folder, "echo x > tools/later.py")[1]
    assert not (folder / "tools/later.py").exists()
    assert not run_inside(served, folder, "echo x > tools/data.db")[1]


NAMED_PROGRAMS = {
    "filter.x.clean": "sh clean.sh %f",
    "filter.x.process": "'/bin/sh' \"clean.sh\"",
    "diff.x.textconv": "sh -c 'exec ./clean.sh'",
    "diff.x.command": "sh ./tools/deep/../../clean.sh",
    "alias.zz": "!sh clean.sh",
    "alias.y": "!f() { sh clean.sh; }; f",
    "pager.log": "$(git rev-parse --show-toplevel)/clean.sh",
    "core.fsmonitor": "$PWD/clean.sh",
    "core.editor": "${PWD}/clean.sh",
    "sequence.editor": '"$(pwd)"/clean.sh',
    "core.sshCommand": "ssh -o ProxyCommand=./clean.sh",
    "gpg.program": "{folder}/clean.sh",
    "gpg.ssh.defaultKeyCommand": "sh clean.sh",
    "credential.helper": "!sh clean.sh",
    "credential.https://x.example.helper": "{folder}/clean.sh",
    "merge.x.driver": "sh clean.sh %O %A",
    "mergetool.x.cmd": "sh clean.sh $LOCAL",
    "browser.x.cmd": "sh clean.sh",
    "man.x.cmd": "sh clean.sh",
    "remote.origin.uploadpack": "./clean.sh",
    "remote.origin.receivepack": "sh clean.sh",
    "remote.origin.url": "ext::sh clean.sh",
    "uploadpack.packObjectsHook": "./clean.sh",
    "core.gitProxy": "./clean.sh for x.example",
    "trailer.x.command": "sh clean.sh",
    "core.attributesFile": "clean.sh",
    "core.hooksPath": "clean.sh",
    "init.templateDir": "~/work/clean.sh",
    "include.path": "../clean.sh",
    "includeIf.gitdir:/nowhere/.path": "~/work/clean.sh",
    "future.setting": "run --with=clean.sh",
}


@pytest.mark.parametrize("key", NAMED_PROGRAMS)
def test_program_that_any_setting_names(
    key: str, outside: Outside, sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(outside.base))
    (outside.folder / "clean.sh").write_text("")
    assert (
        outside.git(
            outside.folder, "config", key, NAMED_PROGRAMS[key].replace("{folder}", str(outside.folder))
        ).returncode
        == 0
    )
    assert run_inside(sandbox, outside.folder, "echo x > clean.sh")[1]
    assert (outside.folder / "clean.sh").read_text() == ""
    assert run_inside(sandbox, outside.folder, "echo x > other; mkdir clean; touch run sh f") == (
        "[no output; exit code 0]",
        False,
    )


def test_programs_with_odd_spellings_and_in_included_files(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder
    for name in ("my tools/a b.sh", "c.sh", "d.sh", "real/e.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("good\n")
    (folder / "linked").symlink_to("real")
    outside.git(folder, "config", "filter.x.clean", 'sh "my tools/a b.sh"')
    outside.git(folder, "config", "filter.y.clean", "linked/e.sh")
    outside.git(folder, "config", "filter.z.clean", "missing/f.sh")
    outside.git(folder, "config", "include.path", "../settings/one")
    (folder / "settings").mkdir()
    (folder / "settings/one").write_text("[include]\n path = two\n")
    (folder / "settings/two").write_text(
        "[include]\n path = one\n[alias]\n a = !sh \\\n c.sh\n[merge]\n driver = sh d.sh\n"
    )
    for command in (
        "echo x > 'my tools/a b.sh'",
        "echo x > settings/one",
        "echo x > settings/two",
        "echo x > c.sh",
        "echo x > d.sh",
        "echo x > real/e.sh",
        "mkdir other; echo x > other/e.sh; ln -sfn other linked",
        "mkdir other; echo x > other/e.sh; rm linked; mv other linked",
        "mkdir other; echo x > other/f.sh; ln -s other missing",
    ):
        copy = outside.base / "copy"
        shutil.copytree(folder, copy, symlinks=True)
        assert run_inside(sandbox, copy, command)[1], command
        for name in ("my tools/a b.sh", "c.sh", "d.sh", "linked/e.sh", "missing/f.sh"):
            assert not (copy / name).exists() or (copy / name).read_text() == "good\n", (command, name)
        assert (copy / "settings/two").read_text() == (folder / "settings/two").read_text()
        shutil.rmtree(copy)


def test_settings_that_name_only_data(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder
    for name in ("lib", "tests"):
        (folder / name).mkdir()
    for key, value in {
        "core.worktree": str(folder / "lib"),
        "submodule.lib.url": "./lib",
        "blame.ignoreRevsFile": ".ignored",
        "core.excludesFile": "ignore",
        "alias.tests": "log tests",
        "alias.top": "!cd $PWD/ && cd ./ && cd / && ls ~nobody-here/x " + "x" * 300,
        "core.autocrlf": "input",
    }.items():
        outside.git(folder, "config", "-f", ".git/config", key, value)
    (folder / "nested").mkdir()
    outside.make_repository(folder / "nested/deep")
    outside.git(folder / "nested/deep", "config", "alias.up", "!cd ../ && ls $PWD/")
    with (folder / ".git/config").open("a") as config:
        config.write("[odd]\n\tvalue = ./a\0b\n")
    command = "touch lib/x tests/x .ignored ignore input log nested/x nested/deep/x"
    assert run_inside(sandbox, folder, command) == ("[no output; exit code 0]", False)


@pytest.mark.parametrize("place", [".gitconfig", "settings/git/config", "chosen"])
def test_hooks_of_the_user_in_the_folder(
    place: str, outside: Outside, sandbox: ShellSandbox, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(elsewhere / "settings"))
    if place == "chosen":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(elsewhere / "chosen"))
    (elsewhere / place).parent.mkdir(parents=True, exist_ok=True)
    (elsewhere / place).write_text("[core]\n\thooksPath = checks\n")
    assert run_inside(sandbox, outside.folder, "mkdir checks; echo x > checks/pre-commit")[1]
    assert not (outside.folder / "checks").exists()
    (outside.folder / "checks").mkdir()
    assert run_inside(sandbox, outside.folder, "echo x > checks/pre-commit")[1]
    assert not (outside.folder / "checks/pre-commit").exists()


def test_new_repository_does_not_move_the_files_that_it_names(outside: Outside, sandbox: ShellSandbox) -> None:
    command = "mkdir sub; cp -r .git sub/.git; printf '[core]\\nhooksPath = ../file.txt\\n' > sub/.git/config"
    assert run_inside(sandbox, outside.folder, command)[1]
    assert (outside.folder / "file.txt").read_text() == "one\n"


def test_renaming_what_is_new_follows_no_links(outside: Outside, sandbox: ShellSandbox) -> None:
    (outside.base / "home").mkdir()
    (outside.base / "home/.bashrc").write_text("good\n")
    assert run_inside(sandbox, outside.folder, f"ln -s {outside.base}/home here; touch .envrc")[1]
    assert (outside.base / "home/.bashrc").read_text() == "good\n"


# --------------------------------------------------------------------------------- a repository elsewhere, or of others


def test_submodule_and_linked_work_tree(outside: Outside, sandbox: ShellSandbox) -> None:
    outside.make_repository(outside.base / "library")
    assert outside.git(outside.folder, "submodule", "add", str(outside.base / "library"), "lib").returncode == 0
    assert outside.git(outside.folder, "commit", "-qm", "Second").returncode == 0
    assert outside.git(outside.folder, "worktree", "add", str(outside.base / "tree")).returncode == 0
    assert outside.git(outside.folder, "worktree", "add", "inner").returncode == 0
    before = list_guarded(outside.folder)
    for command in (
        "git -C lib config core.fsmonitor x",
        "echo x > .git/modules/lib/hooks/post-checkout",
        "echo x > .git/worktrees/inner/commondir",
        "echo 'gitdir: ../x' > lib/.git",
        "rm inner/.git",
        "cd inner; git config --worktree core.fsmonitor x",
    ):
        assert run_inside(sandbox, outside.folder, command)[1], command
        assert list_guarded(outside.folder) == before, command
    for folder in (outside.folder / "lib", outside.base / "tree", outside.folder / "inner"):
        text, error = run_inside(sandbox, folder, "git status --short && git log -1 && echo new > new.txt")
        assert not error, text
        assert (folder / "new.txt").read_text() == "new\n"
        assert run_inside(sandbox, folder, "rm .git; cp -r /tmp .git")[1]
        assert outside.git(folder, "status").returncode == 0
    outside.use()
    assert outside.has_run == ""


def test_folder_below_a_repository(outside: Outside, sandbox: ShellSandbox) -> None:
    folder = outside.folder / "part"
    folder.mkdir()
    assert not run_inside(sandbox, folder, "git status && git log -1 && echo x > new")[1]
    for command in (
        "cp -r ../.git .git; cp /tmp/evil.config .git/config",
        "cp -r ../.git/* .; cp /tmp/evil.config config; git config -f config core.worktree $PWD",
        "echo x > ../.git/config",
    ):
        assert run_inside(sandbox, folder, command)[1], command
        outside.use()
        assert outside.has_run == ""


def test_folder_in_a_repository_can_not_be_written(outside: Outside, sandbox: ShellSandbox) -> None:
    assert run_inside(sandbox, outside.folder / ".git/hooks", "echo x > post-checkout")[1]
    outside.git(outside.base, "clone", "-q", "--bare", str(outside.folder), "bare")
    assert run_inside(sandbox, outside.base / "bare", "echo x > config")[1]
    assert run_inside(sandbox, outside.base / "bare" / "hooks", "echo x > post-checkout")[1]


def test_home_folder_can_not_be_written(elsewhere: Path, sandbox: ShellSandbox) -> None:
    (elsewhere / "project").mkdir()
    for folder in (elsewhere, elsewhere.parent):
        text, error = run_inside(sandbox, folder, f"echo x > /tmp/x && cat /tmp/x && touch {elsewhere}/x")
        assert error
        assert text.startswith("x\n")
        assert "Read-only file system" in text
    assert not run_inside(sandbox, elsewhere / "project", "echo x > new")[1]


def test_folder_without_git(tmp_path: Path, sandbox: ShellSandbox) -> None:
    (tmp_path / "plain").mkdir()
    assert run_inside(sandbox, tmp_path / "plain", "mkdir -p a/b; echo x > a/b/c; cat a/b/c") == ("x", False)


# -------------------------------------------------------------------------------------------------------- ordinary work


def test_ordinary_work(outside: Outside, sandbox: ShellSandbox) -> None:
    many = "for a in $(seq 40); do mkdir -p node_modules/p$a/.github/workflows; touch node_modules/p$a/.npmrc; done"
    for command in (
        "git status && git diff && git log && git blame file.txt",
        f"{many}; ls node_modules | wc -l; rm -rf node_modules; {many}",
        "mkdir build && echo 'all: ; echo made > build/out' > Makefile && sh -c 'echo made > build/out'",
        "mv build dist && rm -rf dist",
        "sed -i s/one/two/ file.txt && git diff --stat",
        "mkdir .github && echo x > .github/CODEOWNERS",
        "cd $(mktemp -d) && git init -q . && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x",
    ):
        text, error = run_inside(sandbox, outside.folder, command)
        assert not error, (command, text)


@pytest.mark.parametrize("command", ["git add file.txt", "git commit -m x --allow-empty", "git init sub", "git tag x"])
def test_git_that_writes_says_what_to_do(command: str, outside: Outside, sandbox: ShellSandbox) -> None:
    (outside.folder / "file.txt").write_text("two\n")
    text, error = run_inside(sandbox, outside.folder, command)
    assert error
    assert "except .git" in text
    assert f'allow = ["unsandboxed_shell({command})"]' in text


# ------------------------------------------------------------------------------------------------------------------ git


def test_own_git_starts_no_program_of_the_repository(outside: Outside) -> None:
    outside.make_repository(outside.folder / "library")
    outside.git(outside.folder, "submodule", "add", "./library", "lib")
    outside.git(outside.folder, "commit", "-qm", "Second")
    for git in (outside.folder / ".git", outside.folder / ".git/modules/lib", outside.folder / "library/.git"):
        if git.is_dir():
            (git / "config").write_text(outside.config)
            (git / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
            shutil.copytree(outside.canaries, git / "hooks", dirs_exist_ok=True, symlinks=True)
    (outside.folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (outside.folder / "file.txt").write_text("two\n")
    (outside.folder / "library/file.txt").write_text("two\n")
    context = project_context.take(outside.folder, trusting=True)
    assert "M file.txt" in context.git_state
    assert "Second" in context.git_state
    assert context.facts["Git branch"] == "main"
    assert outside.has_run == ""
    outside.git(outside.folder, "status")
    assert outside.has_run != "", "the attempt does not work without protection"


def test_own_git_reads_every_kind_of_repository(outside: Outside) -> None:
    outside.git(outside.folder, "pack-refs", "--all")
    outside.git(outside.folder, "gc", "-q")
    outside.git(outside.folder, "worktree", "add", "-b", "side", str(outside.base / "tree"))
    (outside.base / "tree/new.txt").write_text("x")
    context = project_context.take(outside.base / "tree", trusting=True)
    assert context.facts["Git branch"] == "side"
    assert "?? new.txt" in context.git_state
    assert "First" in context.git_state
    outside.git(outside.base, "init", "-qb", "main", "--object-format=sha256", "hashes")
    outside.git(outside.base / "hashes", "commit", "--allow-empty", "-qm", "Long")
    assert "Long" in project_context.take(outside.base / "hashes", trusting=True).git_state
    outside.git(outside.base, "init", "-qb", "main", "empty")
    assert "none" in project_context.take(outside.base / "empty", trusting=True).git_state


def test_own_git_does_not_hang(outside: Outside) -> None:
    (outside.folder / ".git/HEAD").unlink()
    os.mkfifo(outside.folder / ".git/HEAD")
    assert project_context.take(outside.folder, trusting=True).git_state == ""
    shutil.rmtree(outside.folder / ".git")
    os.mkfifo(outside.folder / ".git")
    assert "Git branch" not in project_context.take(outside.folder, trusting=True).facts


# -------------------------------------------------------------------------------------------------------------- sockets


def listen(address: str | Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(address))
    made.listen()
    return made


CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace('@', chr(0))); print('yes')"


def connect(sandbox: ShellSandbox, folder: Path, address: str | Path) -> str:
    return run_inside(sandbox, folder, f"{PYTHON} -c \"{CONNECT}\" '{address}'")[0]


def test_sockets_outside_can_not_be_reached(
    outside: Outside, sandbox: ShellSandbox, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / ".ssh").mkdir()
    (elsewhere / "runtime").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(elsewhere / "runtime"))
    places = [elsewhere / "agent.sock", elsewhere / ".ssh/first", elsewhere / "runtime/bus"]
    abstract = f"\0segue-test-{os.getpid()}"
    sockets = [listen(place) for place in (*places, abstract)]
    try:
        os.link(elsewhere / ".ssh/first", elsewhere / ".ssh/control")
        (elsewhere / ".ssh/first").rename(elsewhere / ".ssh/other name")
        places += [elsewhere / ".ssh/control", elsewhere / ".ssh/other name"]
        (outside.folder / "link").symlink_to(elsewhere / "agent.sock")
        for place in (*places, outside.folder / "link", f"/proc/self/root{places[0]}", abstract.replace("\0", "@")):
            assert connect(sandbox, outside.folder, place) != "yes", place
        # An address has at most 107 bytes, so the long ones are relative.
        with chdir(outside.base), listen("tmp.sock"):
            assert connect(sandbox, outside.folder, outside.base / "tmp.sock") != "yes"
        with chdir(outside.folder), listen("own.sock"):
            assert connect(sandbox, outside.folder, "own.sock") == "yes"
        networked = find_real(outside.base, has_network=True)
        assert connect(networked, outside.folder, places[0]) != "yes"
    finally:
        for each in sockets:
            each.close()


BIND = """
import socket, sys
made = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for each, address in zip(made, sys.argv[1:]):
    each.bind(address)
    each.listen()
print("ready", flush=True)
sys.stdin.read()
"""


def test_socket_with_a_relative_address(outside: Outside, sandbox: ShellSandbox, elsewhere: Path) -> None:
    (elsewhere / "a/b").mkdir(parents=True)
    command = [sys.executable, "-c", BIND, "only.sock", "../up.sock"]
    with subprocess.Popen(
        command, cwd=elsewhere / "a/b", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for name in ("a/b/only.sock", "a/up.sock"):
            assert connect(sandbox, outside.folder, elsewhere / name) != "yes", name


def test_socket_that_is_removed_while_it_is_covered(
    outside: Outside, sandbox: ShellSandbox, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = iter([[str(elsewhere / "gone/socket")], []])
    monkeypatch.setattr(shell_sandbox, "_find_sockets", lambda _: next(listed))
    assert run_inside(sandbox, outside.folder, "echo x > new; cat new") == ("x", False)


def test_sockets_of_a_command_are_its_own(outside: Outside, sandbox: ShellSandbox) -> None:
    code = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()"
    code += "; socket.socket(socket.AF_UNIX).connect('/tmp/s'); print('yes')"
    assert run_inside(sandbox, outside.folder, f'{PYTHON} -c "{code}"') == ("yes", False)


# ---------------------------------------------------------------------------------------------------- the kernel's ways

# `W` writes to a file, `O` is a folder outside.
ESCAPES = {
    "mount": """mount --bind $O sub; mount -t tmpfs x .git; $W sub/x
        mount -t overlay -o lowerdir=/,upperdir=.,workdir=/tmp x sub; $W sub$O/x""",
    "remount": "mount -o remount,rw /; mount -o remount,rw,bind .git; mount -o remount,rw,bind $O; $W $O/x",
    "umount": "umount .git; umount -l .git; umount -l /; $W .git/config; $W .git/x; umount /run",
    "unshare": """unshare -Urm sh -c 'umount .git; mount -o remount,rw,bind .git; mount --bind . sub
        $W sub/.git/config; $W .git/config; mount --bind / sub; $W sub$O/x; mount -o remount,rw /; $W $O/x'""",
    "overlay": """mkdir work upper; unshare -Urm sh -c '
        mount -t overlay -o lowerdir=/tmp,upperdir=.,workdir=work x upper; $W upper/.git/config'""",
    "nsenter": """nsenter -t 1 -m -U $W $O/x; nsenter -t 1 -a sh -c '$W $O/x'; nsenter --mount=/proc/1/ns/mnt $W $O/x
        nsenter -t $PPID -a sh -c '$W $O/x'""",
    "processes": "for p in /proc/[0-9]*; do $W $p/root$O/x; $W $p/cwd/.git/config; cat $p/environ; done",
    "own root": """for p in self thread-self 1; do $W /proc/$p/root$O/x; $W /proc/$p/root$PWD/.git/config
        $W /proc/$p/cwd/.git/config; done""",
    "mknod": """mknod disk b 8 0; mknod /dev/disk b 259 0; mknod memory c 1 1
        for d in disk memory /dev/disk; do head -c1 $d && cp /etc/hostname file.txt; done""",
    "setuid": """for p in su sudo mount pkexec newgrp; do $p -c "$W $O/x" < /dev/null; done
        cp /bin/sh s; chmod u+s s; ./s -p -c '$W $O/x'""",
    "kernel": """cd /proc; for f in sys/kernel/core_pattern sys/kernel/modprobe sys/vm/swappiness sys/kernel/hotplug
        do test -e $f && cat $f > /tmp/same && cat /tmp/same > $f && cp /etc/hostname $OLDPWD/file.txt; done
        test -w sysrq-trigger && cp /etc/hostname $OLDPWD/file.txt; cat self/uid_map > self/uid_map""",
    "chroot": "chroot /proc/1/root $W $O/x; chroot . $W $O/x; pivot_root . sub; $W $O/x",
    "links": "$W ../outside/x; $W sub/../../outside/x; ln -s $O to; $W to/x; ln $O/../work/.git/config c && $W c",
    "hard links": "ln .git/config c && $W c; ln -L .git/hooks/* sub; ln .git/HEAD sub/h && $W sub/h",
}


@pytest.mark.parametrize("escape", ESCAPES)
def test_ways_through_the_kernel(
    escape: str, outside: Outside, elsewhere: Path, sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = elsewhere / "work"
    shutil.copytree(outside.folder, folder)
    (elsewhere / "outside").mkdir()
    (folder / "sub").mkdir()
    before = list_guarded(folder)
    monkeypatch.setenv("SEGUE_TEST_SECRET_KEY", "from outside")
    command = f"export W='cp /etc/hostname' O={elsewhere}/outside; {ESCAPES[escape]}"
    text, _ = run_inside(sandbox, folder, command)
    assert list_guarded(folder) == before, text
    assert (folder / "file.txt").read_text() == "one\n", text
    assert list((elsewhere / "outside").iterdir()) == [], text
    assert "from outside" not in text


def test_handles_of_this_process_are_not_inherited(outside: Outside, sandbox: ShellSandbox) -> None:
    handle = os.open(outside.base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.set_inheritable(handle, True)
        text, _ = run_inside(
            sandbox, outside.folder, "for f in /proc/self/fd/*; do readlink $f; done; ls -l /proc/1/fd"
        )
        kinds = {line.partition(":")[0].split("/")[0] for line in text.splitlines()}
        assert str(outside.base) not in text.replace(str(outside.folder), ""), text
        assert "socket" not in kinds
    finally:
        os.close(handle)


PTRACE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print({pid}, libc.ptrace(16, {pid}, 0, 0))
"""


def test_processes_outside_can_not_be_traced(outside: Outside, sandbox: ShellSandbox) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            code = PTRACE.format(pid=process.pid).replace("\n", "\\n")
            text, _ = run_inside(sandbox, outside.folder, f"{PYTHON} -c \"exec('{code}')\"; kill -9 {process.pid}")
            assert f"{process.pid} -1" in text, text
            assert process.poll() is None
        finally:
            process.kill()


def test_command_has_no_terminal(outside: Outside, sandbox: ShellSandbox) -> None:
    code = "import fcntl, termios, os; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')"
    text, error = run_inside(sandbox, outside.folder, f'{PYTHON} -c "{code}"')
    assert error
    assert "No such device or address" in text, text
    text, _ = run_inside(sandbox, outside.folder, "ls /dev/pts; ls -l /proc/self/fd | grep -c pts")
    assert text.splitlines()[:2] == ["ptmx", "0"]
    text, _ = run_inside(sandbox, outside.folder, "ps -o sid= -p $$; cat /proc/$$/stat | cut -d' ' -f7")
    assert text.splitlines()[-2 if "exit" in text else -1] == "0", text


def test_name_created_by_a_command_that_still_runs(outside: Outside, sandbox: ShellSandbox) -> None:
    first = sandbox.start(GuardedPaths.find(outside.folder))
    (outside.folder / ".envrc").write_text("x")
    second = sandbox.start(GuardedPaths.find(outside.folder))
    (outside.folder / ".envrc").rename(outside.folder / "hidden")
    assert sandbox.end(first) == []
    (outside.folder / "hidden").rename(outside.folder / ".envrc")
    [moved] = sandbox.end(second)
    assert moved.startswith(".envrc (now segue-moved-")


def test_name_created_by_a_command_that_is_cancelled(outside: Outside, sandbox: ShellSandbox) -> None:
    async def go() -> None:
        command = "touch .envrc ready; sleep 1000"
        call: Any = shell(sandbox=sandbox).run({"command": command}, Context(outside.folder))
        running = asyncio.ensure_future(call)
        while not (outside.folder / "ready").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(go())
    assert not (outside.folder / ".envrc").exists()
    assert sandbox.running == []

"""The context of a conversation: folder, date, git state and instruction files, by recorded bodies."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import segue.emulator
from segue.canonical.blocks import Message, Text
from segue.cli import project_context
from segue.cli.project_context import InstructionFile, ProjectContext
from segue.emulator import Emulator
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project
from tests.cli.terminal_session import CTRL_D, PROMPT, TerminalSession

MODEL = ("-m", "anthropic/claude-sonnet-5")
CONTEXT = ProjectContext(
    {"Working folder": "/src", "Date": "2026-11-18"}, "", (InstructionFile(Path("/src/AGENTS.md"), "A\nB", True),)
)
SYSTEM = f"Be brief.\n\n{CONTEXT.text}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def claude(project: Project) -> Iterator[Emulator]:
    with segue.emulator.start("anthropic", script="\n---\n".join(["say Yes."] * 9), keys=[KEY]) as emulator:
        project.configure_providers(anthropic=emulator)
        yield emulator


def system_of(emulator: Emulator, number: int = -1) -> str:
    body: Any = emulator.requests[number].body
    return body["system"] if isinstance(body["system"], str) else "".join(block["text"] for block in body["system"])


def last_texts(emulator: Emulator) -> list[str]:
    body: Any = emulator.requests[-1].body
    content = body["messages"][-1]["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content]


# ------------------------------------------------------------------------------------------------------------- changes


def note(text: str) -> Message:
    return Message("human", (Text("Hi"), Text(text)))


def test_unchanged_context_has_no_note():
    assert CONTEXT.changes_since(SYSTEM, ()) is None


def test_only_what_changed_is_in_the_note():
    later = replace(CONTEXT, facts={**CONTEXT.facts, "Date": "2026-11-19"})
    text = later.changes_since(SYSTEM, ())
    assert text is not None
    assert text.splitlines()[2:] == ["Date: 2026-11-19"]
    assert later.changes_since(SYSTEM, (note(text),)) is None
    back = CONTEXT.changes_since(SYSTEM, (note(text),))
    assert back is not None
    assert "Date: 2026-11-18" in back


@pytest.mark.parametrize("text", ["A", "A\nB\nC", "C"])
def test_changed_file_is_sent_whole(text: str):
    later = replace(CONTEXT, files=(InstructionFile(Path("/src/AGENTS.md"), text, True),))
    changes = later.changes_since(SYSTEM, ())
    assert changes is not None
    assert changes.endswith(f"# Instructions from /src/AGENTS.md\n{text}")
    assert later.changes_since(SYSTEM, (note(changes),)) is None


def test_removed_file_no_longer_applies():
    later = replace(CONTEXT, files=())
    changes = later.changes_since(SYSTEM, ())
    assert changes is not None
    assert "/src/AGENTS.md\nThese instructions no longer apply." in changes
    assert later.changes_since(SYSTEM, (note(changes),)) is None
    assert CONTEXT.changes_since(SYSTEM, (note(changes),)) is not None


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_system_text_of_the_user_gets_no_changes(system: str | None):
    assert replace(CONTEXT, facts={"Date": "x"}).changes_since(system, ()) is None


# ------------------------------------------------------------------------------------------------------ conversations


def test_context_is_in_the_system_text_and_stays_when_the_conversation_goes_on(project: Project, claude: Emulator):
    (project.folder / "AGENTS.md").write_text("Use tabs.\n")
    (project.folder.parent / "CLAUDE.md").write_text("Be kind.\n")
    assert project.run("trust", str(project.folder.parent)).code == 0
    assert project.run("run", *MODEL, "Hi").code == 0
    system = system_of(claude)
    assert f"Working folder: {project.folder}" in system
    assert "Platform: " in system
    assert system.index("Be kind.") < system.index("Use tabs.")
    (project.folder / "AGENTS.md").write_text("Use blanks.\n")
    assert project.run("run", *MODEL, "-c", "And?").code == 0
    assert system_of(claude) == system
    words, changes = last_texts(claude)
    assert words == "And?"
    assert changes.endswith(f"# Instructions from {project.folder}/AGENTS.md\nUse blanks.")
    assert "Be kind." not in changes
    assert project.run("run", *MODEL, "-c", "More").code == 0
    assert last_texts(claude) == ["More"]


def test_files_of_untrusted_folders_are_not_used(project: Project, claude: Emulator):
    (project.folder / "AGENTS.md").write_text("Use tabs.\n")
    ended = project.run("run", *MODEL, "Hi")
    assert f"{project.folder}/AGENTS.md not used: the folder is not trusted; run segue trust" in ended.err
    assert "Use tabs." not in system_of(claude)
    assert project.run("run", *MODEL, "--trust", "Hi").code == 0
    assert "Use tabs." in system_of(claude)
    trusted = project.run("trust", str(project.folder))
    assert trusted.lines == [f"{project.folder}: trusted"]
    assert project.run("run", *MODEL, "Hi").err.count("not trusted") == 0
    assert "Use tabs." in system_of(claude)
    assert project.run("trust", str(project.folder), "--revoke").lines == [f"{project.folder}: no longer trusted"]
    assert project.run("run", *MODEL, "Hi").code == 0
    assert "Use tabs." not in system_of(claude)


def test_link_to_a_file_elsewhere_is_not_used(project: Project, claude: Emulator, tmp_path: Path):
    (tmp_path / "secret.txt").write_text("the secret")
    (project.folder / "AGENTS.md").symlink_to(tmp_path / "secret.txt")
    project.run("trust", str(project.folder))
    assert project.run("run", *MODEL, "Hi").code == 0
    assert "the secret" not in system_of(claude)


def test_files_have_a_limit_that_the_nearest_uses_first(project: Project):
    (project.folder / "AGENTS.md").write_text("x" * 30_000)
    (project.folder.parent / "AGENTS.md").write_text("y" * 30_000)
    context = project_context.take(project.folder, trusting=True)
    far, near = (file for file in context.files if project.folder.parent in (file.path.parent, file.path.parent.parent))
    assert (near.is_cut, far.is_cut) == (False, True)
    assert context.text.count("x") >= 30_000
    assert context.text.count("y") < 2_100


def test_claude_md_counts_where_there_is_no_agents_md(project: Project):
    (project.folder / "CLAUDE.md").write_text("one")
    assert project_context.find_files(project.folder)[0].name == "CLAUDE.md"
    (project.folder / "AGENTS.md").write_text("two")
    assert [file.name for file in project_context.find_files(project.folder) if file.parent == project.folder] == [
        "AGENTS.md"
    ]


def test_own_system_text_and_no_tools_have_no_context(project: Project, claude: Emulator):
    assert project.run("run", *MODEL, "--system", "Be brief.", "Hi").code == 0
    assert system_of(claude) == "Be brief."
    assert project.run("run", *MODEL, "--no-tools", "Hi").code == 0
    assert "system" not in (claude.requests[-1].body or {})


def test_git_is_run_in_trusted_folders_only(project: Project, claude: Emulator):
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=project.folder, check=True, capture_output=True)

    git("init", "-b", "trunk")
    git("commit", "--allow-empty", "-m", "First commit")
    (project.folder / "new.txt").write_text("x")
    assert project.run("run", *MODEL, "Hi").code == 0
    assert "Git branch: trunk" in system_of(claude)
    assert "First commit" not in system_of(claude)
    assert project.run("run", *MODEL, "--trust", "Hi").code == 0
    assert "Changed files at the start: ?? new.txt" in system_of(claude)
    assert "First commit" in system_of(claude)


def test_run_after_a_command_that_changed_the_repository_starts_no_program(project: Project, tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=project.folder, check=True)
    seen = tmp_path / "seen"
    settings = f"git config -f copy/config core.fsmonitor 'touch {seen}'"
    settings += (
        f"; git config -f copy/config filter.x.clean 'touch {seen}; cat'; echo '* filter=x' > copy/info/attributes"
    )
    command = f"cp -r .git copy; {settings}; echo x > new.txt; echo ../copy > .git/commondir; mv .git old; mv copy .git"
    call = msgspec.json.encode({"command": command}).decode()
    script = f"call shell {call}\n---\nsay Done.\n---\nsay Again."
    with segue.emulator.start("anthropic", script=script, keys=[KEY]) as emulator:
        project.configure_providers(anthropic=emulator)
        for prompt in ("Hi", "And?"):
            assert project.run("run", *MODEL, "--allow", "shell", "--trust", prompt).code == 0
        assert "?? new.txt" in system_of(emulator)
    assert not seen.exists()


def test_subagent_has_the_context_too(project: Project):
    script = 'call task {"description": "look", "prompt": "Look."}\n---\nsay Seen.\n---\nsay Done.'
    with segue.emulator.start("anthropic", script=script, keys=[KEY]) as emulator:
        project.configure_providers(anthropic=emulator)
        assert project.run("run", *MODEL, "Hi").code == 0
        assert "You work on one task for another agent" in system_of(emulator, 1)
        assert f"Working folder: {project.folder}" in system_of(emulator, 1)


def test_context_command_lists_files_and_sizes(project: Project, claude: Emulator):
    (project.folder / "AGENTS.md").write_text("Use tabs.\n")
    project.run("trust")
    output = project.run("chat", *MODEL, stdin=b"/context\n").out.decode()
    assert "AGENTS.md" in output
    assert "AGENTS.md: 9 bytes, used" in output
    assert "1,000,000 tokens" in output
    project.run("trust", "--revoke")
    assert (
        "AGENTS.md: not used, the folder is not trusted"
        in project.run("chat", *MODEL, stdin=b"/context\n").out.decode()
    )


def test_chat_asks_whether_to_use_the_instructions(project: Project, claude: Emulator):
    (project.folder / "AGENTS.md").write_text("Use tabs.\n")
    for answer, is_used in (("n", False), ("y", True)):
        with TerminalSession("chat", *MODEL, environment=project.variables, folder=project.folder) as session:
            session.wait_for_text("Trust these folders and use the instructions?")
            session.enter(answer)
            session.wait_for_text(PROMPT)
            session.enter("Hi")
            session.wait_for_text("Yes.")
            session.type(CTRL_D)
            assert session.wait_exit() == 0
        assert ("Use tabs." in system_of(claude)) is is_used


def test_nothing_to_trust_is_an_error(project: Project):
    ended = project.run("trust")
    assert is_one_line_error(ended)
    assert "nothing to trust" in ended.err

"""The chat commands, line by line through a pipe."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

import segue.emulator
from segue.cli.chat_ui.command import Command
from segue.cli.chat_ui.commands import COMMANDS, find
from segue.emulator import Emulator
from segue.errors import InputError
from segue.store.sqlite import SqliteStore
from tests.cli.fork_server import run_forked
from tests.cli.process import ProcessResult, environment, run

CLAUDE = "anthropic/claude-sonnet-4-5"


class Pipe:
    def __init__(self, folder: Path, claude: Emulator, kimi: Emulator) -> None:
        self.folder, self.claude, self.kimi = folder, claude, kimi
        self.variables = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "SEGUE_STORE": str(folder / "chats.db"),
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_BASE_URL": claude.base_url,
            "MOONSHOT_API_KEY": "any",
            "MOONSHOT_BASE_URL": kimi.base_url,
        }

    def __call__(self, *lines: str, flags: tuple[str, ...] = ("-m", CLAUDE)) -> ProcessResult:
        return run("chat", *flags, stdin="".join(f"{line}\n" for line in lines).encode(), **self.variables)

    def text(self, *lines: str) -> str:
        ended = self(*lines)
        assert (ended.code, ended.err) == (0, "")
        return ended.out.decode()


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Pipe]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with (
        segue.emulator.start("anthropic", script="say One.\n---\nsay Two.\n---\nsay Three.") as claude,
        segue.emulator.start("kimi", script="say Kimi one.\n---\nsay Kimi two.") as kimi,
    ):
        yield Pipe(tmp_path, claude, kimi)


@pytest.mark.parametrize("lines", [(), ("and then?",)], ids=["none", "one"])
def test_a_prompt_is_answered_before_stdin_is_read(pipe: Pipe, lines: tuple[str, ...]):
    # The end of stdin is there before the reply.
    with segue.emulator.start("anthropic", script="wait 0.5\nsay One.\n---\nsay Two.") as slow:
        pipe.variables["ANTHROPIC_BASE_URL"] = slow.base_url
        ended = pipe(*lines, flags=("-m", CLAUDE, "good morning"))
    assert (ended.code, ended.err) == (0, "")
    output = ended.out.decode()
    assert [text for text in ("One.", "Two.", "cancelled") if text in output] == ["One.", "Two."][: 1 + len(lines)]


def test_the_table_begins_with_help_and_describes_every_command():
    assert next(iter(COMMANDS)) == "help"
    assert all(command.description and command.description[0].islower() for command in COMMANDS.values())


def test_agent_page_documents_every_command():
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
    chapter = page.split("## Chat\n")[1].split("\n## ")[0]
    output = re.findall(r"^\| `(/.+?)` \| (.+) \|$", chapter, re.MULTILINE)
    assert output == [(command.usage.replace("|", "\\|"), command.description) for command in COMMANDS.values()]


def test_commands_match_by_prefix_and_typos_are_reported():
    assert find("q").name == "quit"
    assert find("toolf").name == "toolformat"
    with pytest.raises(InputError, match="did you mean /model or /models"):
        find("mod")
    with pytest.raises(InputError, match="did you mean /conversations"):
        find("conversatons")
    with pytest.raises(InputError, match="/help lists them"):
        find("zzz")


@pytest.mark.parametrize("name", ["nope", "exec", "list", "what", "done", "stop"])
def test_unrelated_command_is_not_a_typo(name: str):
    with pytest.raises(InputError, match="/help lists them"):
        find(name)


@pytest.mark.parametrize(("name", "meant"), [("nwe", "new"), ("mpc", "mcp"), ("hlep", "help"), ("cots", "cost")])
def test_transposed_letters_are_a_typo(name: str, meant: str):
    with pytest.raises(InputError, match=f"did you mean /{meant}"):
        find(name)


def test_piped_output_is_plain_lines(pipe: Pipe):
    ended = pipe("hello", "/help", "/models")
    assert ended.code == 0
    assert b"\x1b" not in ended.out
    assert "One." in ended.lines
    for name in COMMANDS:
        assert f"/{name}" in ended.out.decode()


def test_another_model_from_the_next_request_on(pipe: Pipe):
    output = pipe.text("hello", "/model kimi", "/model", "again", "/route")
    assert "moonshot/kimi-k2.6 from the next request" in output
    assert "Kimi one." in output
    assert re.search(r"fixed.*\n +▸ +moonshot/kimi-k2.6", output)
    assert len(pipe.claude.requests) == len(pipe.kimi.requests) == 1
    assert pipe.kimi.requests[0].accepted


def test_unknown_models_and_missing_keys_are_rejected(pipe: Pipe):
    output = pipe.text("/model mistral", "/model moonshoot/kimi-k2.6", "/model")
    assert "no key for mistral: set MISTRAL_API_KEY" in output
    assert "did you mean moonshot" in output
    assert f"{CLAUDE}, API anthropic" in output


def test_routes(pipe: Pipe):
    output = pipe.text(f"/route round-robin {CLAUDE} kimi/kimi-k2.6", "one", "two", "three", "/route", "/route nowhere")
    assert [len(pipe.claude.requests), len(pipe.kimi.requests)] == [2, 1]
    assert "round-robin  the next model for each exchange" in output
    assert "unknown route 'nowhere'" in output


def test_undoing_the_first_exchange_starts_a_new_conversation(pipe: Pipe):
    output = pipe.text("/undo", "hello", "/undo", "again")
    assert "nothing to undo: there are no messages yet" in output
    assert "first exchange undone («hello»)" in output
    assert "hello" not in str(pipe.claude.requests[-1].body)


def test_conversations_are_closed_and_resumed(pipe: Pipe):
    pipe.text("hello", "/fork", "in the copy", "/new", "elsewhere", "/new")
    with SqliteStore(pipe.folder / "chats.db") as store:
        rows = store.list()
        assert sorted(row.messages for row in rows) == [2, 2, 4]
        (copy,) = [row for row in rows if row.messages == 4]
    output = pipe.text("/conversations", f"/conversations {copy.id}", "/conversations zzzz")
    assert all(row.id in output for row in rows)
    assert "in the copy" in output.split("/conversations ID continues")[1]
    assert "zzzz" in output


def test_usage_and_sent_body(pipe: Pipe):
    output = pipe.text("/cost", "hello", "/tokens", "/cost", "/diag", "/tools", "/mcp", "/debug", "again")
    assert "no usage since this chat was opened" in output
    assert re.search(r"conversation +about \d", output)
    assert re.search(rf"{CLAUDE} .*1 request", output)
    assert "accepted: anthropic would accept this request" in output
    assert re.search(r"\n +read_file +\S", output)
    assert "no MCP server" in output
    assert "request 2 to anthropic" in output


def test_export_format_follows_the_file_name(pipe: Pipe):
    output = pipe.text("hello", "/export chat.md", "/export chat.html", "/export chat.doc", "/export no/where.md")
    assert "hello" in Path("chat.md").read_text()
    assert "<html" in Path("chat.html").read_text()
    assert Path("chat.md").stat().st_mode & 0o077 == 0
    assert "unknown file type: chat.doc" in output
    assert "can't write" in output


def test_export_overwrites_only_when_forced(pipe: Pipe):
    keep, linked = Path("keep this.md"), Path("linked.md")
    keep.write_text("mine")
    keep.chmod(0o644)
    linked.symlink_to("nowhere.md")
    output = pipe.text("hello", "/export keep this.md", "/export linked.md")
    assert "keep this.md already exists; /export keep this.md --force overwrites it" in output
    assert keep.read_text() == "mine"
    assert not linked.exists()
    pipe.text("again", "/export keep this.md --force")
    assert "again" in keep.read_text()
    assert keep.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_surplus_command_arguments_are_an_error(command: Command):
    assert command.validate_arguments("") == ""
    if command.name in ("allow", "attach", "export", "route", "set"):
        assert command.validate_arguments("a b c d") == "a b c d"
        return
    with pytest.raises(InputError, match=f"too many arguments: .*; usage: /{command.name}"):
        command.validate_arguments("one two three")


def test_a_model_is_one_word(pipe: Pipe):
    output = pipe.text("/model kimi/kimi-k2.6 extra", "/model", "/new words", "hello")
    assert "too many arguments: 'kimi/kimi-k2.6 extra'; usage: /model PROVIDER/MODEL [--brief]" in output
    assert f"{CLAUDE}, API anthropic" in output
    assert "usage: /new" in output
    assert not pipe.kimi.requests


def test_tokens_are_the_same_everywhere(pipe: Pipe):
    output = pipe.text("hello " * 400, "again", "/tokens", "/compress drop-oldest", "/tokens")
    before, after = re.findall(r"conversation +about ([\d,]+)", output)
    assert f"compressed (drop-oldest): about {before} → {after} tokens" in output
    output = pipe.text("hello", "/tokens", "/compress 100000")
    (holds,) = re.findall(r"conversation +about ([\d,]+)", output)
    assert f"about {holds} tokens" in output.split("nothing to leave out")[0]


def test_earlier_usage_is_reported_as_not_counted(pipe: Pipe):
    pipe.text("hello")
    output = pipe("/cost", "/tokens", "again", "/cost", "/tokens", flags=("-c", "-m", CLAUDE)).out.decode()
    assert output.count("no usage since this chat was opened") == 2
    assert output.count("since this chat was opened:") == 2


def test_a_path_is_no_command(pipe: Pipe):
    output = pipe.text("/etc/hosts is what?")
    assert "One." in output


def test_pipe_gets_no_approval_question(pipe: Pipe):
    with segue.emulator.start("anthropic", script='call write_file {"path": "x", "content": "y"}\n---\nsay Ok.') as it:
        pipe.variables["ANTHROPIC_BASE_URL"] = it.base_url
        output = pipe.text("write", "y", "yes")
    assert "✗ write_file" in output
    assert "there is no prompt for it" in output
    assert not Path("x").exists()


def test_contradictory_flags(pipe: Pipe):
    assert pipe(flags=("--json",)).code == 2


def test_closed_reader_ends_the_chat_quietly(pipe: Pipe):
    read_end, write_end = os.pipe()
    os.close(read_end)
    given = pipe.folder / "lines"
    given.write_text("hello\nagain\n")
    with given.open("rb") as stdin, (pipe.folder / "err").open("w+b") as err:
        code = run_forked(
            ["chat", "-m", CLAUDE], environment(**pipe.variables), (stdin.fileno(), write_end, err.fileno())
        )
        os.close(write_end)
        err.seek(0)
        assert (code, err.read()) == (141, b"")
    assert not pipe.claude.requests

"""The commands of the chat, line by line through a pipe: the same table, and no terminal to look at."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

import segue.emulator
from segue.cli.chatting.command import Command
from segue.cli.chatting.commands import COMMANDS, find
from segue.emulator import Emulator
from segue.errors import InputError
from segue.store.sqlite import SqliteStore
from tests.cli.process import Ended, environment, run
from tests.cli.warm import run_warm

CLAUDE = "anthropic/claude-sonnet-4-5"
WANTED = (
    "help model models provider route toolformat tools mcp compress undo new sessions fork export tokens cost diag "
    "debug quit"
)


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

    def __call__(self, *lines: str, flags: tuple[str, ...] = ("-m", CLAUDE)) -> Ended:
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


def test_the_table_has_every_command():
    assert set(WANTED.split()) <= set(COMMANDS)
    assert next(iter(COMMANDS)) == "help"
    assert all(command.about and command.about[0].islower() for command in COMMANDS.values())


def test_the_guide_tells_every_command():
    page = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    chapter = page.split("## Chat\n")[1].split("\n## ")[0]
    told = re.findall(r"^\| `(/.+?)` \| (.+) \|$", chapter, re.MULTILINE)
    assert told == [(command.usage.replace("|", "\\|"), command.about) for command in COMMANDS.values()]


def test_commands_are_found_by_their_beginning_and_slips_are_told():
    assert find("q").name == "quit"
    assert find("toolf").name == "toolformat"
    with pytest.raises(InputError, match="did you mean /model or /models"):
        find("mod")
    with pytest.raises(InputError, match="/sessions"):
        find("sesions")
    with pytest.raises(InputError, match="/help lists them"):
        find("zzz")


@pytest.mark.parametrize("name", ["nope", "exec", "list", "what", "done", "stop"])
def test_another_word_is_no_slip(name: str):
    with pytest.raises(InputError, match="/help lists them"):
        find(name)


@pytest.mark.parametrize(("name", "meant"), [("nwe", "new"), ("mpc", "mcp"), ("hlep", "help"), ("cots", "cost")])
def test_letters_that_changed_places_are(name: str, meant: str):
    with pytest.raises(InputError, match=f"did you mean /{meant}"):
        find(name)


def test_nothing_but_lines_comes_out_of_a_pipe(pipe: Pipe):
    ended = pipe("hello", "/help", "/models")
    assert ended.code == 0
    assert b"\x1b" not in ended.out
    assert "One." in ended.lines
    for name in COMMANDS:
        assert f"/{name}" in ended.out.decode()


def test_another_model_from_the_next_request_on(pipe: Pipe):
    told = pipe.text("hello", "/model kimi", "/model", "again", "/route")
    assert "moonshot/kimi-k2.6 from the next request" in told
    assert "Kimi one." in told
    assert re.search(r"fixed.*\n +▸ +moonshot/kimi-k2.6", told)
    assert len(pipe.claude.requests) == len(pipe.kimi.requests) == 1
    assert pipe.kimi.requests[0].accepted


def test_models_that_are_none_or_have_no_key_are_refused(pipe: Pipe):
    told = pipe.text("/model mistral", "/model moonshoot/kimi-k2.6", "/model")
    assert "no key for mistral: set MISTRAL_API_KEY" in told
    assert "did you mean moonshot" in told
    assert f"{CLAUDE}, API anthropic" in told


def test_routes(pipe: Pipe):
    told = pipe.text(f"/route round-robin {CLAUDE} kimi/kimi-k2.6", "one", "two", "three", "/route", "/route nowhere")
    assert [len(pipe.claude.requests), len(pipe.kimi.requests)] == [2, 1]
    assert "round-robin  the next model for each exchange" in told
    assert "unknown route 'nowhere'" in told


def test_the_first_exchange_taken_back_is_a_new_conversation(pipe: Pipe):
    told = pipe.text("/undo", "hello", "/undo", "again")
    assert "nothing to undo: there are no messages yet" in told
    assert "first exchange undone («hello»)" in told
    assert "hello" not in str(pipe.claude.requests[-1].body)


def test_conversations_are_left_and_gone_on_with(pipe: Pipe):
    pipe.text("hello", "/fork", "in the copy", "/new", "elsewhere", "/new")
    with SqliteStore(pipe.folder / "chats.db") as store:
        rows = store.list()
        assert sorted(row.messages for row in rows) == [2, 2, 4]
        (copy,) = [row for row in rows if row.messages == 4]
    told = pipe.text("/sessions", f"/sessions {copy.id}", "/sessions zzzz")
    assert all(row.id in told for row in rows)
    assert "in the copy" in told.split("/sessions ID continues")[1]
    assert "zzzz" in told


def test_what_is_used_and_what_is_sent(pipe: Pipe):
    told = pipe.text("/cost", "hello", "/tokens", "/cost", "/diag", "/tools", "/mcp", "/debug", "again")
    assert "no usage since this chat was opened" in told
    assert re.search(r"conversation +about \d", told)
    assert re.search(rf"{CLAUDE} .*1 request", told)
    assert "accepted: anthropic would accept this request" in told
    assert re.search(r"\n +read_file +\S", told)
    assert "no MCP server" in told
    assert "request 2 to anthropic" in told


def test_export_writes_what_the_name_says(pipe: Pipe):
    told = pipe.text("hello", "/export chat.md", "/export chat.html", "/export chat.doc", "/export no/where.md")
    assert "hello" in Path("chat.md").read_text()
    assert "<html" in Path("chat.html").read_text()
    assert Path("chat.md").stat().st_mode & 0o077 == 0
    assert "unknown file type: chat.doc" in told
    assert "can't write" in told


def test_export_writes_over_nothing_unless_told_to(pipe: Pipe):
    keep, linked = Path("keep this.md"), Path("linked.md")
    keep.write_text("mine")
    keep.chmod(0o644)
    linked.symlink_to("nowhere.md")
    told = pipe.text("hello", "/export keep this.md", "/export linked.md")
    assert "keep this.md already exists; /export keep this.md --force overwrites it" in told
    assert keep.read_text() == "mine"
    assert not linked.exists()
    pipe.text("again", "/export keep this.md --force")
    assert "again" in keep.read_text()
    assert keep.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_more_words_than_a_command_takes_are_a_slip(command: Command):
    assert command.checked("") == ""
    if command.name in ("export", "route"):
        assert command.checked("a b c d") == "a b c d"
        return
    with pytest.raises(InputError, match=f"too many arguments: .*; usage: /{command.name}"):
        command.checked("one two three")


def test_a_model_is_one_word(pipe: Pipe):
    told = pipe.text("/model kimi/kimi-k2.6 extra", "/model", "/new words", "hello")
    assert "too many arguments: 'kimi/kimi-k2.6 extra'; usage: /model [PROVIDER/MODEL]" in told
    assert f"{CLAUDE}, API anthropic" in told
    assert "usage: /new" in told
    assert not pipe.kimi.requests


def test_tokens_are_the_same_everywhere(pipe: Pipe):
    told = pipe.text("hello " * 400, "again", "/tokens", "/compress drop-oldest", "/tokens")
    before, after = re.findall(r"conversation +about ([\d,]+)", told)
    assert f"compressed (drop-oldest): about {before} → {after} tokens" in told
    told = pipe.text("hello", "/tokens", "/compress 100000")
    (holds,) = re.findall(r"conversation +about ([\d,]+)", told)
    assert f"about {holds} tokens" in told.split("nothing to leave out")[0]


def test_what_was_used_before_is_not_counted_and_that_is_said(pipe: Pipe):
    pipe.text("hello")
    told = pipe("/cost", "/tokens", "again", "/cost", "/tokens", flags=("-c", "-m", CLAUDE)).out.decode()
    assert told.count("no usage since this chat was opened") == 2
    assert told.count("since this chat was opened:") == 2


def test_a_path_is_no_command(pipe: Pipe):
    told = pipe.text("/etc/hosts is what?")
    assert "One." in told


def test_nobody_is_asked_through_a_pipe(pipe: Pipe):
    with segue.emulator.start("anthropic", script='call write_file {"path": "x", "content": "y"}\n---\nsay Ok.') as it:
        pipe.variables["ANTHROPIC_BASE_URL"] = it.base_url
        told = pipe.text("write", "y", "yes")
    assert "✗ write_file" in told
    assert "nobody is there" in told
    assert not Path("x").exists()


def test_flags_that_make_no_sense(pipe: Pipe):
    assert pipe(flags=("--json",)).code == 2
    assert "segue run --json" in pipe(flags=("--json",)).err


def test_a_reader_who_went_away_ends_it_quietly(pipe: Pipe):
    read_end, write_end = os.pipe()
    os.close(read_end)
    given = pipe.folder / "lines"
    given.write_text("hello\nagain\n")
    with given.open("rb") as stdin, (pipe.folder / "err").open("w+b") as err:
        code = run_warm(
            ["chat", "-m", CLAUDE], environment(**pipe.variables), (stdin.fileno(), write_end, err.fileno())
        )
        os.close(write_end)
        err.seek(0)
        assert (code, err.read()) == (141, b"")
    assert not pipe.claude.requests

"""Interactive, one-shot and as a subagent: the same script writes the same history, through the same door."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import segue.emulator
from segue.store.conversation import StoredConversation
from segue.store.events import kind_of
from segue.store.sqlite import SqliteStore
from tests.cli.process import SEGUE, environment
from tests.cli.project import KEY, Project
from tests.cli.seat import CTRL_C, CTRL_D, PROMPT, Seat
from tests.interrupts import default_interrupt
from tests.runtime import bodies
from tests.runtime.watching import lacking, told

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")

WAYS = ("chat", "run", "task")
TOOLS = ("read_file", "write_file", "edit_file", "shell", "fetch_url")
COMPANION = "mistral/mistral-medium-latest"
MODELS = {"anthropic": "claude-sonnet-5", "kimi": "kimi-k2-0905-preview", "deepseek": "deepseek-chat"}
APIS = {"anthropic": "anthropic", "kimi": "kimi", "deepseek": "deepseek"}

# Each of the two shells waits for the other's file: one after the other, neither would ever end.
SCRIPT = """
say    I look around.
call   read_file {"path": "notes.txt"}
call   read_file {"path": "nowhere.txt"}
call   shell {"command": "touch a; until [ -e b ]; do sleep 0.01; done; echo a saw b"}
call   shell {"command": "touch b; until [ -e a ]; do sleep 0.01; done; echo b saw a"}
call   nobody {"path": "x"}
call   read_file {"file": "notes.txt"}
call   fetch_url {"url": "http://127.0.0.1:9/"}
---
error  503 Busy.
---
say    I will not fin
call   write_file {"path": "never.txt", "content": "never"}
cut
---
call   write_file {"path": "new.txt", "content": "one\\n"}
call   edit_file {"path": "notes.txt", "old": "bread", "new": "cake"}
---
say    All done.
"""

STOPPED = """
say    I wait.
call   read_file {"path": "notes.txt"}
call   shell {"command": "touch waits; sleep 600"}
call   shell {"command": "sleep 600"}
---
say    Never said.
"""


class Kept(NamedTuple):
    """What was written down, and what the provider was asked."""

    history: list[Any]
    events: list[str]
    asked: list[Any]


class Stand:
    """A folder, a store and a provider: new for each way, so that each has the same before it."""

    def __init__(self, folder: Path, name: str, script: str) -> None:
        folder.mkdir()
        self.project = Project(folder)
        (self.project.folder / "notes.txt").write_text("Buy bread.\n")
        self.name = name
        self.model = f"{name}/{MODELS[name]}"
        self.provider = segue.emulator.start(APIS[name], script=script, keys=[KEY])
        order = json.dumps({"description": "the work", "prompt": "Go.", "model": self.model, "tools": TOOLS})
        self.parent = segue.emulator.start("mistral", script=f"call   task {order}\n---\nsay    It did.", keys=[KEY])
        self.project.uses(**{name: self.provider, "mistral": self.parent})
        with (self.project.home / ".config" / "segue" / "config.toml").open("a") as file:
            file.write('[tools]\nallow = ["shell", "write_file", "edit_file"]\ndeny = ["fetch_url"]\n')

    def close(self) -> None:
        self.provider.stop()
        self.parent.stop()

    @property
    def variables(self) -> dict[str, str]:
        source = str(Path(segue.__file__).parents[1])
        return environment(**self.project.variables, PYTHONPATH=source)

    def sit(self) -> Seat:
        flags = "-m", self.model, "--tools", ",".join(TOOLS)
        return Seat("chat", *flags, environment=self.variables, folder=self.project.folder)

    def run(self, way: str) -> subprocess.Popen[bytes]:
        flags = ("-m", self.model, "--tools", ",".join(TOOLS)) if way == "run" else ("-m", COMPANION, "--allow", "task")
        # In a group of its own, so that a signal for it is for nobody else.
        with default_interrupt():
            return subprocess.Popen(
                [*SEGUE, "run", *flags, "Go."],
                env=self.variables,
                cwd=self.project.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )

    def until(self, name: str) -> None:
        end = time.monotonic() + 100
        while not (self.project.folder / name).exists():
            assert time.monotonic() < end, f"{name} never came"
            time.sleep(0.005)

    def kept(self, *, of_task: bool) -> Kept:
        with SqliteStore(self.project.store) as store:
            titles = {record.id: record.title or "" for record in store.list()}
            [found] = [name for name, title in titles.items() if title.startswith("task: ") == of_task]
            chat = StoredConversation(store, found, owner="a reader")
            assert lacking(chat.messages) == []
            assert chat.pending == []
            # Only a task has a title. Which call ends first is the tools' affair: it is said at once, or known first.
            kinds = [kind_of(record.event) for record in store.events(found)]
            events = [kind for kind in kinds if kind not in ("titled", "known", "completed", "published")]
            asked = []
            for request in self.provider.requests:
                assert request.body is not None
                assert bodies.wrong(APIS[self.name], request.body) == []
                assert request.status not in (400, 404, 413, 422), request.refused
                asked.append([part._replace(id=None) for part in bodies.parts(APIS[self.name], request.body)])
            return Kept(told(chat.messages, thinking=True), events, asked)


def _answered(stand: Stand, way: str) -> Kept:
    """The whole script, in this way."""
    if way == "chat":
        with stand.sit() as seat:
            seat.see(PROMPT)
            seat.enter("Go.")
            seat.see("All done.")
            seat.type(CTRL_D)
            assert seat.left() == 0
    else:
        running = stand.run(way)
        out, err = running.communicate(timeout=100)
        assert running.returncode == 0, err.decode()
        assert out.decode().rstrip().endswith("All done." if way == "run" else "It did.")
    return stand.kept(of_task=way == "task")


def _stopped(stand: Stand, way: str) -> Kept:
    """Ctrl-C while a command runs."""
    if way == "chat":
        with stand.sit() as seat:
            seat.see(PROMPT)
            seat.enter("Go.")
            stand.until("waits")
            seat.see("notes.txt")
            seat.type(CTRL_C)
            seat.see("cancelled")
            seat.type(CTRL_D)
            seat.left()
    else:
        running = stand.run(way)
        stand.until("waits")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=100)
        assert running.returncode == 130
    return stand.kept(of_task=way == "task")


@pytest.fixture
def stands(tmp_path: Path) -> Iterator[Callable[[str, str, str], Stand]]:
    made: list[Stand] = []

    def make(way: str, name: str, script: str) -> Stand:
        made.append(Stand(tmp_path / f"{way}-{name}", name, script))
        return made[-1]

    yield make
    for stand in made:
        stand.close()


@pytest.mark.parametrize("name", ["anthropic", "kimi"])
def test_interactive_one_shot_and_subagent_write_the_same_history(name: str, stands: Any) -> None:
    kept = {way: _answered(stands(way, name, SCRIPT), way) for way in WAYS}
    history, events, asked = kept["run"]
    states = [line[1] for line in history if line[0] == "tool"]
    assert states[:2] == ["complete", "error"]
    assert [line[3] for line in history if line[0] == "tool"][2:4] == ["a saw b", "b saw a"]
    assert len(states) == 9
    for way in WAYS:
        assert kept[way].history == history, way
        assert kept[way].events == events, way
        assert kept[way].asked == asked, way


def test_interactive_one_shot_and_subagent_are_cancelled_alike(stands: Any) -> None:
    kept = {way: _stopped(stands(way, "deepseek", STOPPED), way) for way in WAYS}
    history = kept["run"].history
    assert [line[1] for line in history if line[0] == "tool"] == ["complete", "cancelled", "cancelled"]
    for way in WAYS:
        assert kept[way].history == history, way
        assert kept[way].asked == kept["run"].asked, way


# ------------------------------------------------------------------------------------------------------ the one path


def _called(name: str) -> set[str]:
    """The modules of the program in which something of this name is called."""
    root = Path(segue.__file__).parent
    found: set[str] = set()
    for file in [*root.glob("runtime/**/*.py"), *root.glob("cli/**/*.py")]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and name in (
                getattr(node.func, "id", None),
                getattr(node.func, "attr", None),
            ):
                found.add(file.relative_to(root).as_posix())
    return found


def test_6_tool_execution_path_invariant_there_is_one_way() -> None:
    """One scheduler a session; one place where sessions are made for people, and one for subagents; one door."""
    assert _called("Scheduler") == {"runtime/session.py"}
    assert _called("run_batch") == {"runtime/session.py"}
    assert _called("run_one") == set()
    assert _called("Session") - {"runtime/aws.py"} == {"cli/agent.py", "runtime/subagents.py"}
    assert _called("know") == {"runtime/scheduler.py"}
    # The demonstration has a conversation and no session.
    assert _called("add_result") - {"cli/demo_journey.py"} == {"runtime/scheduler.py", "runtime/book.py"}

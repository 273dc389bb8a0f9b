"""Interactive, one-shot and as a subagent, the same script writes the same history through the same code path."""

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
from segue.store.events import event_kind
from segue.store.sqlite import SqliteStore
from tests.cli.process import SEGUE, environment
from tests.cli.project import KEY, Project
from tests.cli.terminal_session import CTRL_C, CTRL_D, PROMPT, TerminalSession
from tests.interrupts import default_interrupt
from tests.runtime import bodies
from tests.runtime.session_checks import find_unpaired, summarize_history

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")

MODES = ("chat", "run", "task")
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


class ModeFixture:
    """A folder, a store and a provider: new for each way, so that each has the same before it."""

    def __init__(self, folder: Path, name: str, script: str) -> None:
        folder.mkdir()
        self._processes: list[subprocess.Popen[bytes]] = []
        self.project = Project(folder)
        (self.project.folder / "notes.txt").write_text("Buy bread.\n")
        self.name = name
        self.model = f"{name}/{MODELS[name]}"
        self.provider = segue.emulator.start(APIS[name], script=script, keys=[KEY])
        order = json.dumps({"description": "the work", "prompt": "Go.", "model": self.model, "tools": TOOLS})
        self.parent = segue.emulator.start("mistral", script=f"call   task {order}\n---\nsay    It did.", keys=[KEY])
        self.project.configure_providers(**{name: self.provider, "mistral": self.parent})
        with (self.project.home / ".config" / "segue" / "config.toml").open("a") as file:
            file.write('[tools]\nallow = ["shell", "write_file", "edit_file"]\ndeny = ["fetch_url"]\n')

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()
        self.provider.stop()
        self.parent.stop()

    @property
    def variables(self) -> dict[str, str]:
        source = str(Path(segue.__file__).parents[1])
        return environment(**self.project.variables, PYTHONPATH=source)

    def start_chat(self) -> TerminalSession:
        flags = "-m", self.model, "--tools", ",".join(TOOLS)
        return TerminalSession("chat", *flags, environment=self.variables, folder=self.project.folder)

    def run(self, mode: str) -> subprocess.Popen[bytes]:
        flags = (
            ("-m", self.model, "--tools", ",".join(TOOLS)) if mode == "run" else ("-m", COMPANION, "--allow", "task")
        )
        # In a group of its own, so that a signal for it is for nobody else.
        with default_interrupt():
            process = subprocess.Popen(
                [*SEGUE, "run", *flags, "Go."],
                env=self.variables,
                cwd=self.project.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def wait_until(self, name: str) -> None:
        end = time.monotonic() + 100
        while not (self.project.folder / name).exists():
            assert time.monotonic() < end, f"{name} never came"
            time.sleep(0.005)

    def read_history(self, *, of_task: bool) -> Kept:
        with SqliteStore(self.project.store) as store:
            titles = {record.id: record.title or "" for record in store.list()}
            [found] = [name for name, title in titles.items() if title.startswith("task: ") == of_task]
            chat = StoredConversation(store, found, owner="a reader")
            assert find_unpaired(chat.messages) == []
            assert chat.pending == []
            # Only a task has a title. Which call ends first is the tools' affair: it is said at once, or known first.
            kinds = [event_kind(record.event) for record in store.events(found)]
            events = [kind for kind in kinds if kind not in ("renamed", "recorded", "completed", "published")]
            asked = []
            for request in self.provider.requests:
                assert request.body is not None
                assert bodies.find_violations(APIS[self.name], request.body) == []
                assert request.status not in (400, 404, 413, 422), request.refused
                asked.append([part._replace(id=None) for part in bodies.parts(APIS[self.name], request.body)])
            return Kept(summarize_history(chat.messages, thinking=True), events, asked)


def _run_script(fixture: ModeFixture, mode: str) -> Kept:
    """The whole script, in this way."""
    if mode == "chat":
        with fixture.start_chat() as seat:
            seat.wait_for_text(PROMPT)
            seat.enter("Go.")
            seat.wait_for_text("All done.")
            seat.type(CTRL_D)
            assert seat.wait_exit() == 0
    else:
        running = fixture.run(mode)
        out, err = running.communicate(timeout=100)
        assert running.returncode == 0, err.decode()
        assert out.decode().rstrip().endswith("All done." if mode == "run" else "It did.")
    return fixture.read_history(of_task=mode == "task")


def _run_and_interrupt(fixture: ModeFixture, mode: str) -> Kept:
    """Ctrl-C while a command runs."""
    if mode == "chat":
        with fixture.start_chat() as seat:
            seat.wait_for_text(PROMPT)
            seat.enter("Go.")
            fixture.wait_until("waits")
            seat.wait_for_text("notes.txt")
            seat.type(CTRL_C)
            seat.wait_for_text("cancelled")
            seat.type(CTRL_D)
            seat.wait_exit()
    else:
        running = fixture.run(mode)
        fixture.wait_until("waits")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=100)
        assert running.returncode == 130
    return fixture.read_history(of_task=mode == "task")


@pytest.fixture
def make_fixture(tmp_path: Path) -> Iterator[Callable[[str, str, str], ModeFixture]]:
    made: list[ModeFixture] = []

    def make(mode: str, name: str, script: str) -> ModeFixture:
        made.append(ModeFixture(tmp_path / f"{mode}-{name}", name, script))
        return made[-1]

    yield make
    for fixture in made:
        fixture.close()


@pytest.mark.parametrize("name", ["anthropic", "kimi"])
def test_interactive_one_shot_and_subagent_write_the_same_history(name: str, make_fixture: Any) -> None:
    kept = {mode: _run_script(make_fixture(mode, name, SCRIPT), mode) for mode in MODES}
    history, events, asked = kept["run"]
    states = [line[1] for line in history if line[0] == "tool"]
    assert states[:2] == ["complete", "error"]
    assert [line[3] for line in history if line[0] == "tool"][2:4] == ["a saw b", "b saw a"]
    assert len(states) == 9
    for mode in MODES:
        assert kept[mode].history == history, mode
        assert kept[mode].events == events, mode
        assert kept[mode].asked == asked, mode


def test_interactive_one_shot_and_subagent_cancel_the_same(make_fixture: Any) -> None:
    kept = {mode: _run_and_interrupt(make_fixture(mode, "deepseek", STOPPED), mode) for mode in MODES}
    history = kept["run"].history
    assert [line[1] for line in history if line[0] == "tool"] == ["complete", "cancelled", "cancelled"]
    for mode in MODES:
        assert kept[mode].history == history, mode
        assert kept[mode].asked == kept["run"].asked, mode


# ------------------------------------------------------------------------------------------------------ the one path


def _modules_calling(name: str) -> set[str]:
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


def test_6_tool_execution_path_invariant_single_path() -> None:
    """One scheduler a session; one place where sessions are made for people, and one for subagents; one door."""
    assert _modules_calling("Scheduler") == {"runtime/session.py"}
    assert _modules_calling("run_batch") == {"runtime/session.py"}
    assert _modules_calling("run_one") == set()
    assert _modules_calling("Session") - {"bridge/aws.py"} == {"cli/agent.py", "runtime/session.py"}
    assert _modules_calling("record_result") == {"runtime/scheduler.py"}
    # The demonstration has a conversation and no session.
    assert _modules_calling("add_result") - {"cli/demo_run.py"} == {
        "runtime/scheduler.py",
        "runtime/conversation_log.py",
    }

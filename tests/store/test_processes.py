"""Several processes on one store: killed writers and concurrent writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from segue.store.events import MessageAdded
from tests.budget import SOAK
from tests.store.conftest import Engine

ROOT = Path(__file__).parents[2]
KILLS = {"sqlite": 60, "postgres": 15} if not SOAK else {"sqlite": 5_000, "postgres": 500}
AGENTS = {"sqlite": 30, "postgres": 10} if not SOAK else {"sqlite": 2_000, "postgres": 200}
ROUNDS = 10 if not SOAK else 1_000
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}


def run_killer(module: str, engine: Engine, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *engine.address, str(kills), "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=None if SOAK else 290,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    # Else nobody was killed while writing, and nothing was shown.
    assert summary["acknowledged"] > kills
    assert summary["events"] >= summary["acknowledged"]


def test_acknowledged_writes_survive_kill_9(engine: Engine) -> None:
    run_killer("tests.store.crash_writer", engine, KILLS[engine.kind])


def test_killed_agent_resumes(engine: Engine) -> None:
    run_killer("tests.store.crash_agent", engine, AGENTS[engine.kind])


class ConcurrentWriter:
    def __init__(self, stack: ExitStack, engine: Engine, conversation: str) -> None:
        self.process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "tests.store.concurrent_writer", *engine.address, conversation],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=ENVIRONMENT,
            )
        )

    def send(self, *words: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def receive(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()


def test_many_that_make_the_same_store_at_once(engine: Engine) -> None:
    with ExitStack() as stack:
        writers = [ConcurrentWriter(stack, engine, "shared") for _ in range(5)]
        assert [writer.receive() for writer in writers] == [["ready"]] * 5
        engine.open().create(id="shared")
        for seq, writer in enumerate(writers):
            writer.send("append", 2 * seq, "hello")
            assert writer.receive() == ["wrote", str(2 * seq + 2)]


def test_concurrent_writes_have_one_winner_and_both_continue(engine: Engine) -> None:
    store = engine.open()
    conversation = store.create()
    winners: list[str] = []
    with ExitStack() as stack:
        writers = {name: ConcurrentWriter(stack, engine, conversation) for name in ("left", "right")}
        assert [writer.receive() for writer in writers.values()] == [["ready"]] * 2
        seq = 0
        for number in range(ROUNDS):
            for name, writer in writers.items():
                writer.send("append", seq, f"{name}-{number}")
            answers = {name: writer.receive() for name, writer in writers.items()}
            assert sorted(answers.values()) == [["conflict", str(seq + 2)], ["wrote", str(seq + 2)]]
            [winner] = [name for name, answer in answers.items() if answer[0] == "wrote"]
            [loser] = [name for name in writers if name != winner]
            winners += [f"{winner}-{number}", f"{loser}-{number}"]
            writers[loser].send("append", seq + 2, f"{loser}-{number}")
            seq += 4
            assert writers[loser].receive() == ["wrote", str(seq)]
    texts = [r.event.message.blocks[0].text for r in store.events(conversation) if isinstance(r.event, MessageAdded)]  # pyright: ignore[reportAttributeAccessIssue]
    assert texts == [name for name in winners for _ in range(2)]


def test_concurrent_lease_requests_have_one_winner(engine: Engine) -> None:
    store = engine.open()
    conversation = store.create()
    with ExitStack() as stack:
        writers = {name: ConcurrentWriter(stack, engine, conversation) for name in ("left", "right")}
        assert [writer.receive() for writer in writers.values()] == [["ready"]] * 2
        for _ in range(ROUNDS):
            for name, writer in writers.items():
                writer.send("acquire", name)
            answers = sorted(writer.receive() for writer in writers.values())
            [held, holds] = answers
            assert (held[0], holds[0]) == ("held", "holds")
            assert held[1] == holds[1]
            store.release(conversation, holds[1])

"""Several processes and one store: writers that are killed, and writers that want the same thing at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from segue.store.events import Said
from tests.budget import SOAK

from .conftest import Engine

ROOT = Path(__file__).parents[2]
KILLS = {"sqlite": 200, "postgres": 30} if not SOAK else {"sqlite": 5_000, "postgres": 500}
AGENTS = {"sqlite": 80, "postgres": 20} if not SOAK else {"sqlite": 2_000, "postgres": 200}
ROUNDS = 25 if not SOAK else 1_000
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}


def killed(module: str, engine: Engine, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *engine.at, str(kills), "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=None if SOAK else 290,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # Else nobody was killed while writing, and nothing was shown.
    assert told["acknowledged"] > kills
    assert told["events"] >= told["acknowledged"]


def test_what_was_acknowledged_survives_kill_9(engine: Engine) -> None:
    killed("tests.store.mortal", engine, KILLS[engine.kind])


def test_an_agent_that_is_killed_goes_on_where_it_was(engine: Engine) -> None:
    killed("tests.store.mortal_agent", engine, AGENTS[engine.kind])


class Rival:
    def __init__(self, stack: ExitStack, engine: Engine, conversation: str) -> None:
        self.process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "tests.store.rival", *engine.at, conversation],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=ENVIRONMENT,
            )
        )

    def tell(self, *words: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()


def test_many_that_make_the_same_store_at_once(engine: Engine) -> None:
    with ExitStack() as stack:
        rivals = [Rival(stack, engine, "shared") for _ in range(5)]
        assert [rival.answer() for rival in rivals] == [["ready"]] * 5
        engine.open().create(id="shared")
        for seq, rival in enumerate(rivals):
            rival.tell("append", 2 * seq, "hello")
            assert rival.answer() == ["wrote", str(2 * seq + 2)]


def test_of_two_that_write_at_once_one_wins_and_both_go_on(engine: Engine) -> None:
    store = engine.open()
    conversation = store.create()
    winners: list[str] = []
    with ExitStack() as stack:
        rivals = {name: Rival(stack, engine, conversation) for name in ("left", "right")}
        assert [rival.answer() for rival in rivals.values()] == [["ready"]] * 2
        seq = 0
        for number in range(ROUNDS):
            for name, rival in rivals.items():
                rival.tell("append", seq, f"{name}-{number}")
            answers = {name: rival.answer() for name, rival in rivals.items()}
            assert sorted(answers.values()) == [["conflict", str(seq + 2)], ["wrote", str(seq + 2)]]
            [winner] = [name for name, answer in answers.items() if answer[0] == "wrote"]
            [loser] = [name for name in rivals if name != winner]
            winners += [f"{winner}-{number}", f"{loser}-{number}"]
            rivals[loser].tell("append", seq + 2, f"{loser}-{number}")
            seq += 4
            assert rivals[loser].answer() == ["wrote", str(seq)]
    texts = [r.event.message.blocks[0].text for r in store.events(conversation) if isinstance(r.event, Said)]  # pyright: ignore[reportAttributeAccessIssue]
    assert texts == [name for name in winners for _ in range(2)]


def test_of_two_that_want_the_lease_at_once_one_gets_it(engine: Engine) -> None:
    store = engine.open()
    conversation = store.create()
    with ExitStack() as stack:
        rivals = {name: Rival(stack, engine, conversation) for name in ("left", "right")}
        assert [rival.answer() for rival in rivals.values()] == [["ready"]] * 2
        for _ in range(ROUNDS):
            for name, rival in rivals.items():
                rival.tell("acquire", name)
            answers = sorted(rival.answer() for rival in rivals.values())
            [held, holds] = answers
            assert (held[0], holds[0]) == ("held", "holds")
            assert held[1] == holds[1]
            store.release(conversation, holds[1])

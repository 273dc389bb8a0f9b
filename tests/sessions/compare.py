"""Compares `segue move` with session-migrate on the same sessions: `python -m tests.sessions.compare PROGRAM`.

PROGRAM is the command of session-migrate, installed from PyPI. Both move each session to each other client that both
support with files, and back, without any work in between. The next request of the other client is judged by segue's own
checker.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from segue.errors import InputError
from segue.sessions.client import SessionFile
from tests.sessions.record import WORK
from tests.sessions.test_damages import DAMAGES
from tests.sessions.test_moving_back import signatures
from tests.sessions.world import World

_RECORDED_WORDS = ("CONTENT-ALPHA", "RESULT-ONE")
_CLIENTS = ("claude", "codex", "qwen", "pi")


class Outcome(NamedTuple):
    """Whether the next request is valid, whether the results are at their calls, and how many of the first client's
    signatures are there again after the move back. `error`: the session was not moved."""

    is_valid: bool = False
    has_results: bool = False
    restored: int = 0
    signed: int = 0
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"**{self.error}**"
        reasoning = f"; reasoning {self.restored} of {self.signed}" if self.signed else ""
        verdict = "accepted" if self.is_valid else "**rejected**"
        return f"{verdict}; results {'right' if self.has_results else '**wrong**'}{reasoning}"


Mover = Callable[[World, SessionFile, str], SessionFile]


def _move_with_segue(world: World, session: SessionFile, target: str) -> SessionFile:
    return world.move(session, target).session


def _move_with(program: str) -> Mover:
    def move(world: World, session: SessionFile, target: str) -> SessionFile:
        output = world.home.path / f"{target}.jsonl"
        output.unlink(missing_ok=True)
        command = [program, "convert", "--to", target, "--format", session.client, "--cwd", WORK]
        subprocess.run([*command, "--output", str(output), str(session.path)], check=True, capture_output=True)
        return world.add(target, output.read_bytes(), id="0a1b2c3d-0000-4000-8000-00000000000f")

    return move


def _judge(world: World, session: SessionFile, target: str, words: Sequence[str], move: Mover) -> Outcome:
    before = signatures(world, session)
    away = move(world, session, target)
    results = [result for _, _, result in world.calls(away)]
    texts = [result for result in results if any(word in result for word in words)]
    found = all(sum(word in result for result in texts) == 1 for word in words)
    is_valid = not world.violations(away)
    home = move(world, away, session.client)
    after = signatures(world, home)
    return Outcome(is_valid, found, len([each for each in after if each in before]), len(before))


def _try(name: str, target: str, move: Mover) -> Outcome:
    client, build, words = _SESSIONS[name]
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        session = world.add_recorded(client) if build is None else world.add_lines(client, build())
        try:
            return _judge(world, session, target, words, move)
        except subprocess.CalledProcessError as error:
            return Outcome(error=f"refused: {error.stderr.decode().strip().splitlines()[-1][:80]}")
        except InputError as error:
            return Outcome(error=f"not readable: {error.message[:60]}")


_SESSIONS: dict[str, tuple[str, Callable[[], list[dict[str, Any]]] | None, tuple[str, ...]]] = {
    **{f"{client} recorded": (client, None, _RECORDED_WORDS) for client in _CLIENTS},
    **{
        name: (client, build, tuple(f"RESULT-{word}" for word in words))
        for name, (client, build, words) in DAMAGES.items()
        if client in _CLIENTS
    },
}


def main(program: str) -> None:
    movers = {"session-migrate": _move_with(program), "segue": _move_with_segue}
    outcomes: dict[str, list[Outcome]] = {each: [] for each in movers}
    print("| session | to | session-migrate | segue |\n|---|---|---|---|")
    for name, (client, _, _) in _SESSIONS.items():
        for target in _CLIENTS:
            if target == client:
                continue
            row = {each: _try(name, target, move) for each, move in movers.items()}
            print(f"| {name} | {target} | {' | '.join(map(str, row.values()))} |", flush=True)
            for each, outcome in row.items():
                outcomes[each].append(outcome)
    for each, found in outcomes.items():
        accepted, right = sum(one.is_valid for one in found), sum(one.has_results for one in found)
        restored = [one for one in found if one.signed or one.error]
        reasoning = sum(one.signed > 0 and one.restored == one.signed for one in restored)
        total = len(found)
        print(f"{each}: accepted {accepted} of {total}, results {right} of {total}, reasoning {reasoning}")


if __name__ == "__main__":
    main(sys.argv[1])

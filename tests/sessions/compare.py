"""Compares `segue move` with session-migrate on the same sessions: `python -m tests.sessions.compare PROGRAM`.

PROGRAM is the command of session-migrate, installed from PyPI. Both move each session to the other client and back,
without any work in between. The next request of the other client is judged by segue's own checker.
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
from tests.sessions.test_way_home import signatures
from tests.sessions.world import World

_RECORDED_WORDS = ("CONTENT-ALPHA", "RESULT-ONE")
_OTHER = {"claude": "codex", "codex": "claude"}


class Outcome(NamedTuple):
    """Whether the next request is valid, the results at their calls, and the reasoning there again at home."""

    is_valid: bool
    results: bool
    reasoning: str

    def __str__(self) -> str:
        verdict = "accepted" if self.is_valid else "**rejected**"
        return f"{verdict}; {'right' if self.results else '**wrong**'}; {self.reasoning}"


Mover = Callable[[World, SessionFile, str], SessionFile]


def _move_with_segue(world: World, session: SessionFile, target: str) -> SessionFile:
    return world.move(session, target).session


def _move_with(program: str) -> Mover:
    def move(world: World, session: SessionFile, target: str) -> SessionFile:
        output = world.place.home / f"{target}.jsonl"
        output.unlink(missing_ok=True)
        command = [program, "convert", "--to", target, "--format", session.client, "--cwd", WORK]
        subprocess.run([*command, "--output", str(output), str(session.path)], check=True, capture_output=True)
        return world.add(target, output.read_bytes(), id="0a1b2c3d-0000-4000-8000-00000000000f")

    return move


def _judge(world: World, session: SessionFile, words: Sequence[str], move: Mover) -> Outcome:
    target = _OTHER[session.client]
    before = signatures(world, session)
    away = move(world, session, target)
    results = [result for _, _, result in world.calls(away)]
    texts = [result for result in results if any(word in result for word in words)]
    found = all(sum(word in result for result in texts) == 1 for word in words)
    is_valid = not world.violations(away)
    home = move(world, away, session.client)
    after = signatures(world, home)
    kept = f"{len([each for each in after if each in before])} of {len(before)}" if before else "none"
    return Outcome(is_valid, found, kept)


def main(program: str) -> None:
    sessions: dict[str, tuple[str, list[dict[str, Any]] | None, tuple[str, ...]]] = {
        "claude recorded": ("claude", None, _RECORDED_WORDS),
        "codex recorded": ("codex", None, _RECORDED_WORDS),
    }
    for name, (client, build, words) in DAMAGES.items():
        if client not in _OTHER:
            continue
        sessions[name] = client, build(), tuple(f"RESULT-{word}" for word in words)
    print("| session | session-migrate | segue |\n|---|---|---|")
    for name, (client, lines, words) in sessions.items():
        cells: list[str] = []
        for move in (_move_with(program), _move_with_segue):
            with tempfile.TemporaryDirectory() as folder:
                world = World(Path(folder))
                session = world.add_recorded(client) if lines is None else world.add_lines(client, lines)
                try:
                    cells.append(str(_judge(world, session, words, move)))
                except subprocess.CalledProcessError as error:
                    cells.append(f"refused: {error.stderr.decode().strip().splitlines()[-1][:80]}")
                except InputError as error:
                    cells.append(f"not readable: {error.message[:60]}")
        print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""Writes docs/client-moves.md from the results of all moves; one without a result is marked as not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.clients.damages import DAMAGES
from tests.clients.move_rows import MOVE_ROWS
from tests.clients.moves import MoveResult

_HEAD = """# Sessions moved between clients

Written by `make clients`, with the real clients on emulated providers. The client of the row makes a session: it reads
a file and a picture in parallel, thinks, edits a file, runs a command, and is killed during a command of its second
prompt. The session is [moved](move.md) to the client of the column, which resumes it with a new prompt, then moved
back and resumed there.

A cell is *right* if the provider accepts the first request of each resumed client, every prompt is in it and every call
with its own result, the client runs the next command, and moving a second time changes nothing. In the first table, the
client of the column must also list the moved session among those that it resumes. The damages below the first two
tables are done to the session of the first client; then only the second one resumes it. Of an orphan the text must be
in the request, of cut arguments all that was before the cut. A compaction is made by the first client itself: the
request must have the summary and what that client then sent itself, and nothing else from before. For 5,000 messages,
an exchange that the first client made is repeated 1,250 times.
"""


def write_moves_page(file: Path, results: Sequence[MoveResult]) -> None:
    file.write_text("\n".join(_list_lines({(each.source, each.target, each.damage): each for each in results})) + "\n")


def _list_lines(results: dict[tuple[str, str, str], MoveResult]) -> Iterator[str]:
    yield _HEAD
    pairs = [((each.source, each.target), each.versions) for each in results.values()]
    versions = {name: version for names, found in pairs for name, version in zip(names, found, strict=True)}
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}."
    for damage in DAMAGES:
        yield f"\n## {DAMAGES[damage].title}\n"
        yield f"| from | {' | '.join(f'to {name}' for name in MOVE_ROWS)} |"
        yield f"| {' | '.join(['---'] * (len(MOVE_ROWS) + 1))} |"
        for source in MOVE_ROWS:
            cells = [_format(results, source, target, damage) for target in MOVE_ROWS]
            yield f"| {source} | {' | '.join(cells)} |"
        for source, reason in DAMAGES[damage].impossible.items():
            yield f"\nNot possible in {source}: {reason}."
    wrong = [each for each in results.values() if each.problems]
    if wrong:
        yield "\n## What is wrong\n"
        for each in wrong:
            yield f"- {each.source} to {each.target}, {each.damage}: {each.problems[0].splitlines()[0][:160]}"


def _format(results: dict[tuple[str, str, str], MoveResult], source: str, target: str, damage: str) -> str:
    if source == target:
        return ""
    if source in DAMAGES[damage].impossible:
        return "not possible"
    result = results.get((source, target, damage))
    return "not run" if result is None else "**wrong**" if result.problems else "right"

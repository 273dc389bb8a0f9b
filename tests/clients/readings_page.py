"""Writes docs/client-readings.md from the results of all readings; one without a result is marked as not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.clients.readings import ReadingResult, Scenario

_HEAD = """# Sessions as their clients send them

Written by `make clients`. A client makes a session on an emulated provider; segue reads the session; then the client
resumes it with a new prompt. A cell is *right* if the history in that request is what segue read: the same prompts,
texts, calls with their arguments, results, pictures and signed reasoning, in the same order. The client's own
instructions and facts about the machine are not compared, nor the texts that it inserts in place of a result or reply
that is missing. The number is that of the blocks.
"""


def write_readings_page(
    file: Path, scenarios: Mapping[str, Mapping[str, Scenario]], results: Sequence[ReadingResult]
) -> None:
    file.write_text("\n".join(_list_lines(scenarios, {(each.client, each.scenario): each for each in results})) + "\n")


def _list_lines(
    scenarios: Mapping[str, Mapping[str, Scenario]], results: Mapping[tuple[str, str], ReadingResult]
) -> Iterator[str]:
    yield _HEAD
    versions = {each.client: each.version for each in results.values()}
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}.\n"
    yield f"| session | {' | '.join(scenarios)} |"
    yield f"| {' | '.join(['---'] * (len(scenarios) + 1))} |"
    for name in dict.fromkeys(name for rows in scenarios.values() for name in rows):
        cells = [_format(results.get((client, name)), name in rows) for client, rows in scenarios.items()]
        yield f"| {name.replace('-', ' ')} | {' | '.join(cells)} |"
    wrong = [each for each in results.values() if each.problems]
    if wrong:
        yield "\n## What is wrong\n"
        for each in wrong:
            yield f"- {each.client}, {each.scenario}: {each.problems[0].splitlines()[0][:160]}"


def _format(result: ReadingResult | None, is_possible: bool) -> str:
    if not is_possible:
        return ""
    return "not run" if result is None else "**wrong**" if result.problems else f"right, {result.blocks}"

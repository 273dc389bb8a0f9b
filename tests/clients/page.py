"""Writes docs/clients.md from the results of all runs; a cell without a result is marked as not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.clients.cells import list_cells
from tests.clients.rows import CHANGED_MODELS, CLIENT_ROWS, UPSTREAMS
from tests.clients.run import Cell, Result
from tests.clients.task import MISBEHAVIOURS, PLAIN

_HEAD = """# Clients behind the gateway

Written by `make clients`, which runs each client unmodified and headless with `segue with`, on emulated providers. The
model's replies are scripted: two parallel reads, a command, text; then, after the client's own resume, a second prompt
with another command. No real provider was called.

A run is *right* if the files are right, each command ran once, no request was rejected, each round reached the provider
once, every call has its one real result there, and all thoughts of a prompt came back with its later requests if the
provider accepts them. All clients request reasoning. `codex-exec` is Codex with its default model, where one tool in a
namespace takes a program as free text; `codex` is Codex with gpt-5.5, which has function tools.
"""
_OTHER_TASKS = f"""
Two lines have other tasks. In one, the commands are run by a tool of an MCP server: `claude`, `codex` and `qwen` defer
it until the model has searched for it; the others declare it at once, or call it from a program. In the other, three
prompts of one session have two models: `segue route` selects the second one
({", ".join(f"`{first}` → `{other}`" for first, other in CHANGED_MODELS.items())}), then the first one again. An empty
cell is impossible: pi has no MCP servers, and the programs of `codex-exec` read no pictures.
"""
_NOT_RUN = "not run"


def write_page(file: Path, results: Sequence[Result]) -> None:
    by_cell = {Cell(each.client, each.upstream, each.misbehaviour): each for each in results}
    file.write_text("\n".join(_list_lines(by_cell)) + "\n")


def _list_lines(results: Mapping[Cell, Result]) -> Iterator[str]:
    yield _HEAD
    clients = list(CLIENT_ROWS)
    yield _row("client", *clients)
    yield _row(*["---"] * (len(clients) + 1))
    yield _row("version", *(_format_versions(client, results) for client in clients))
    yield "\n## Every client on every API\n"
    plain = [cell for cell in list_cells() if cell.misbehaviour == PLAIN]
    yield f"{_count_right(plain, results)}\n"
    yield _row("API, model", *clients)
    yield _row(*["---"] * (len(clients) + 1))
    for upstream, model in UPSTREAMS.items():
        yield _row(f"`{upstream}`, {model}", *(_format_cell(results.get(Cell(client, upstream))) for client in clients))
    yield "\n## Providers that misbehave, and other tasks\n"
    others = [cell for cell in list_cells() if cell.misbehaviour != PLAIN]
    yield f"{_count_right(others, results)} Each line has the providers that were tried with each client.\n"
    yield _row("misbehaviour", *clients)
    yield _row(*["---"] * (len(clients) + 1))
    for name, misbehaviour in MISBEHAVIOURS.items():
        if name != PLAIN:
            yield _row(misbehaviour.title, *(_format_group(client, name, others, results) for client in clients))
    yield _OTHER_TASKS.rstrip()
    yield from _list_wrong(results)


def _format_group(client: str, name: str, cells: Sequence[Cell], results: Mapping[Cell, Result]) -> str:
    found = [cell for cell in cells if (cell.client, cell.misbehaviour) == (client, name)]
    return "<br>".join(f"`{cell.upstream}` {_format_cell(results.get(cell))}" for cell in found)


def _format_cell(result: Result | None) -> str:
    if result is None:
        return _NOT_RUN
    return "**wrong**" if result.problems else "right"


def _format_versions(client: str, results: Mapping[Cell, Result]) -> str:
    return ", ".join(sorted({each.version for each in results.values() if each.client == client})) or _NOT_RUN


def _count_right(cells: Sequence[Cell], results: Mapping[Cell, Result]) -> str:
    run = [results[cell] for cell in cells if cell in results]
    right = sum(not each.problems for each in run)
    return f"{right} of {len(run)} runs are right; {len(cells) - len(run)} of {len(cells)} cells were not run."


def _list_wrong(results: Mapping[Cell, Result]) -> Iterator[str]:
    wrong = [each for each in results.values() if each.problems]
    if wrong:
        yield "\n## What is wrong\n"
        for each in wrong:
            yield f"- {each.client} on `{each.upstream}`, {each.misbehaviour}: {_first_line(each.problems[0])}"


def _first_line(text: str) -> str:
    return text.splitlines()[0][:160].replace("|", "\\|")


def _row(*values: str) -> str:
    return f"| {' | '.join(values)} |"

"""Writes docs/clients.md from the results of all runs; a cell without a result is marked as not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.clients.cells import list_cells
from tests.clients.compactions import COMPACTIONS, WAYS, CompactionResult
from tests.clients.faults import FAULTS, FaultResult, list_faults
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
_OTHER_TASKS = """
In the last line, the commands are run by a tool of an MCP server: `claude`, `codex` and `qwen` defer it until the model
has searched for it; the others declare it at once, or call it from a program. An empty cell is impossible: pi has no
MCP servers, and the programs of `codex-exec` read no pictures.
"""
_RETURNED = """
## Reasoning that comes back

How many thoughts of its own a provider has in the last request of a prompt, and of how many that it sent before calls.
*Switch*: before the second prompt, `segue route` selects another provider. *Back*: before the third prompt, it selects
the first provider again. *Restart*: before the second prompt, `segue serve` is started again with the same `--store`.
*New `segue with`*: there the client's key and the memory are new, so clients of Chat Completions, which have no place
for reasoning, lose what was before. Gemini CLI replaces the signatures of a session that it resumes, and changes the
context that its first message begins with. Cline resumes on a terminal only, and is run with one prompt.
"""
_FAILURES = """
## Providers that fail

What the client does when its provider fails, behind `segue serve`: the requests that reach the provider in all, and the
texts that the client shows. A run is right if both are as here.
"""
_COMPACTIONS = """
## Compacted conversations

The client compacts its conversation on the first provider, behind `segue serve --store`; before each later prompt
`segue route` selects another one, at last OpenAI Responses, whose items are encrypted. A run is right if each later
request has a fact that only the result of the first call had, no provider gets an encrypted item of another one or an
item that segue made, none refuses a request, each command ran once, and the client ends without an error.
"""
_NOT_RUN = "not run"
_SWITCH, _RESTART = "switch", "restart"


def write_page(
    file: Path, results: Sequence[Result], faults: Sequence[FaultResult], compactions: Sequence[CompactionResult]
) -> None:
    by_cell = {Cell(each.client, each.upstream, each.misbehaviour): each for each in results}
    lines = [*_list_lines(by_cell), *_list_faults(faults), *_list_compactions(compactions), *_list_wrong(results)]
    file.write_text("\n".join(lines) + "\n")


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
    clients = [client for client, row in CLIENT_ROWS.items() if not row.tasks]
    others = [cell for cell in list_cells() if cell.misbehaviour not in (PLAIN, _SWITCH, _RESTART)]
    yield f"{_count_right(others, results)} Each line has the providers that were tried with each client.\n"
    yield _row("misbehaviour", *clients)
    yield _row(*["---"] * (len(clients) + 1))
    for name, misbehaviour in MISBEHAVIOURS.items():
        if name not in (PLAIN, _SWITCH, _RESTART):
            yield _row(misbehaviour.title, *(_format_group(client, name, others, results) for client in clients))
    yield _OTHER_TASKS.rstrip()
    yield _RETURNED
    yield from _list_returned(results)


def _list_returned(results: Mapping[Cell, Result]) -> Iterator[str]:
    clients = [client for client, row in CLIENT_ROWS.items() if row.resumes]
    yield _row("prompt", *clients)
    yield _row(*["---"] * (len(clients) + 1))
    for upstream, other in CHANGED_MODELS.items():
        for title, misbehaviour, prompt in (
            (f"switch from `{upstream}` to `{other}`", _SWITCH, 2),
            (f"back to `{upstream}`", _SWITCH, 3),
            (f"restart, `{upstream}`", _RESTART, 2),
            (f"new `segue with`, `{upstream}`", PLAIN, 2),
        ):
            found = (results.get(Cell(client, upstream, misbehaviour)) for client in clients)
            yield _row(title, *(_format_returned(each, prompt) for each in found))


def _format_returned(result: Result | None, prompt: int) -> str:
    if result is None or prompt not in result.returned:
        return _NOT_RUN
    returned, sent = result.returned[prompt]
    return f"{returned} of {sent}" if not result.problems else f"**{returned} of {sent}**"


def _list_faults(results: Sequence[FaultResult]) -> Iterator[str]:
    found = {(each.name, each.upstream): each for each in results}
    upstreams = list(dict.fromkeys(upstream for _, upstream in list_faults()))
    yield _FAILURES
    yield _row("client", "failure", "requests", "shown", *(f"`{upstream}`" for upstream in upstreams))
    yield _row(*["---"] * (len(upstreams) + 4))
    for name, fault in FAULTS.items():
        texts = "<br>".join(f"“{text}”" for text in fault.texts)
        cells = (_format_cell(found.get((name, upstream))) for upstream in upstreams)
        yield _row(fault.client, fault.title, str(fault.requests), texts, *cells)
    wrong = [each for each in results if each.problems]
    if wrong:
        yield ""
        for each in wrong:
            yield f"- {each.name} on `{each.upstream}`: {_first_line(each.problems[0])}"


def _list_compactions(results: Sequence[CompactionResult]) -> Iterator[str]:
    found = {(each.name, each.way): each for each in results}
    yield _COMPACTIONS
    yield _row("client", "compacts", *(", ".join(f"`{upstream}`" for upstream in way) for way in WAYS.values()))
    yield _row(*["---"] * (len(WAYS) + 2))
    for name, compaction in COMPACTIONS.items():
        cells = (_format_cell(found.get((name, way))) for way in WAYS)
        yield _row(compaction.client, compaction.title, *cells)
    wrong = [each for each in results if each.problems]
    if wrong:
        yield ""
        for each in wrong:
            yield f"- {each.name}, {each.way}: {_first_line(each.problems[0])}"


def _format_group(client: str, name: str, cells: Sequence[Cell], results: Mapping[Cell, Result]) -> str:
    found = [cell for cell in cells if (cell.client, cell.misbehaviour) == (client, name)]
    return "<br>".join(f"`{cell.upstream}` {_format_cell(results.get(cell))}" for cell in found)


def _format_cell(result: Result | FaultResult | CompactionResult | None) -> str:
    if result is None:
        return _NOT_RUN
    return "**wrong**" if result.problems else "right"


def _format_versions(client: str, results: Mapping[Cell, Result]) -> str:
    return ", ".join(sorted({each.version for each in results.values() if each.client == client})) or _NOT_RUN


def _count_right(cells: Sequence[Cell], results: Mapping[Cell, Result]) -> str:
    run = [results[cell] for cell in cells if cell in results]
    right = sum(not each.problems for each in run)
    return f"{right} of {len(run)} runs are right; {len(cells) - len(run)} of {len(cells)} cells were not run."


def _list_wrong(results: Sequence[Result]) -> Iterator[str]:
    wrong = [each for each in results if each.problems]
    if wrong:
        yield "\n## What is wrong\n"
        for each in wrong:
            yield f"- {each.client} on `{each.upstream}`, {each.misbehaviour}: {_first_line(each.problems[0])}"


def _first_line(text: str) -> str:
    return text.splitlines()[0][:160].replace("|", "\\|")


def _row(*values: str) -> str:
    return f"| {' | '.join(values)} |"

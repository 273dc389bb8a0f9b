"""Runs the agents of frameworks on every emulated provider, and prints a table: `make frameworks`.

    python -m tests.frameworks.run [--record] [NAME …]

A run is right if every call has its own result at the provider, no request was refused, and the answer arrived. With
`--record` the last body of each agent is written to `tests/data/frameworks/`, which `make test` replays.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from typing import NamedTuple

from tests.frameworks.recorded import Recorded, write_recorded
from tests.frameworks.task import ANSWER, REQUESTS
from tests.frameworks.upstreams import IS_HTTPX2, MODELS, Upstreams

Agent = Callable[[Upstreams, bool], str]


class Row(NamedTuple):
    """A framework's agent: its place in a module of this folder, and the distributions that it needs."""

    name: str
    function: str
    packages: tuple[str, ...]
    final_tool: str | None = None
    calls_as_text: bool = False

    @property
    def agent(self) -> Agent:
        module, _, function = self.function.partition(":")
        return getattr(importlib.import_module(f"tests.frameworks.{module}"), function)


ROWS = (
    Row("langchain-openai-chat", "with_langchain:run_chat", ("langchain-openai",)),
    Row("langchain-openai-chat-async", "with_langchain:run_chat_async", ("langchain-openai",)),
    Row("langchain-openai-responses", "with_langchain:run_responses", ("langchain-openai",)),
    Row("langchain-google", "with_langchain:run_google", ("langchain-google-genai",)),
    Row("langchain-mistral", "with_langchain:run_mistral", ("langchain-mistralai",)),
    Row("pydantic-ai-openai-chat", "with_pydantic_ai:run_chat", ("pydantic-ai-slim",)),
    Row("pydantic-ai-openai-responses", "with_pydantic_ai:run_responses", ("pydantic-ai-slim",)),
    Row("pydantic-ai-anthropic", "with_pydantic_ai:run_anthropic", ("pydantic-ai-slim", "anthropic")),
    Row("pydantic-ai-google", "with_pydantic_ai:run_google", ("pydantic-ai-slim", "google-genai")),
    Row("pydantic-ai-mistral", "with_pydantic_ai:run_mistral", ("pydantic-ai-slim", "mistralai")),
    Row("openai-agents-chat", "with_openai_agents:run_chat", ("openai-agents",)),
    Row("openai-agents-responses", "with_openai_agents:run_responses", ("openai-agents",)),
    Row("smolagents", "with_smolagents:run", ("smolagents",), "final_answer", calls_as_text=True),
    Row("llama-index-chat", "with_llama_index:run_chat", ("llama-index-core",)),
    Row("llama-index-responses", "with_llama_index:run_responses", ("llama-index-core",)),
    Row("litellm", "with_litellm:run", ("litellm",)),
)
LEFT_OUT = {
    "langchain-anthropic": "ChatAnthropic makes its own HTTP client and takes none; a base URL is all that can be set"
}
SWITCH = ("anthropic", "gemini", "moonshot", "anthropic")


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _find_model(provider: str) -> str:
    return next(model for model in MODELS if model.startswith(f"{provider}/"))


def run_agent(row: Row, models: Sequence[str], *, streamed: bool) -> tuple[list[str], Upstreams]:
    """Run an agent whose requests go to these models; return what went wrong, and the upstreams."""
    with Upstreams(models, final_tool=row.final_tool) as upstreams:
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                answer = row.agent(upstreams, streamed)
        except Exception as error:  # noqa: BLE001  whatever a framework raises is a failed run
            refused = upstreams.find_refused()
            return refused or [f"{type(error).__name__}: {error}"], upstreams
        return upstreams.find_faults(answer, ANSWER, calls_as_text=row.calls_as_text), upstreams


def run_row(row: Row) -> tuple[list[str], list[list[str]], list[Recorded]]:
    """Run an agent on every upstream and across three; return the cells of the table, the faults and the bodies."""
    columns = [*([model] * REQUESTS for model in MODELS), [_find_model(name) for name in SWITCH]]
    cells: list[str] = []
    faults: list[list[str]] = []
    recorded: list[Recorded] = []
    for models in columns:
        marks = ""
        for streamed in (False, True):
            found, upstreams = run_agent(row, models, streamed=streamed)
            marks += "-" if found else "+"
            how = "streamed" if streamed else "whole"
            faults += [[row.name, " → ".join(dict.fromkeys(models)), how, fault] for fault in found]
            if not found and len(upstreams.running) > 1:
                recorded.append(Recorded(f"{row.name} {how}", *upstreams.sent[-1]))
        cells.append(marks)
    return cells, faults, recorded


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the recorded bodies")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only agents whose names contain one of these")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows = [row for row in ROWS if all(map(_find_version, row.packages))]
    rows = [row for row in rows if not options.names or any(name in row.name for name in options.names)]
    library = "httpx2" if IS_HTTPX2 else "httpx"
    print(f"openai {_find_version('openai')} on {library} {_find_version(library)}; + is right, whole and streamed")
    _print_cells("", "", [*(model.partition("/")[0] for model in MODELS), "switch"])
    faults: list[list[str]] = []
    recorded: list[Recorded] = []
    for row in rows:
        cells, found, bodies = run_row(row)
        _print_cells(row.name, _find_version(row.packages[0]) or "", cells)
        faults += found
        recorded += bodies
    for (name, fault), places in _group(faults).items():
        print(f"{name}: {fault[:600]} ({', '.join(places)})")
    for package, reason in LEFT_OUT.items():
        print(f"not run: {package}: {reason}")
    if options.record:
        write_recorded(recorded, library)
    if not rows:
        print("no framework is installed")
    return 1 if faults or not rows else 0


def _group(faults: Sequence[Sequence[str]]) -> dict[tuple[str, str], list[str]]:
    """Return where each fault of an agent occurred."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, upstream, how, fault in faults:
        grouped.setdefault((name, fault), []).append(f"{upstream} {how}")
    return grouped


def _print_cells(name: str, number: str, cells: Sequence[str]) -> None:
    print(f"{name:30}{number:10}{' '.join(f'{cell:11}' for cell in cells)}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())

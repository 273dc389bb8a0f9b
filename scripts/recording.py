"""Write the pictures of the README: `python -m scripts.recording` (or `make recording`).

`docs/refused-accepted.svg` is a request that the next provider refuses, and the same request through segue;
`docs/demo.svg` is what `segue demo` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import segue
from scripts.svg import RECORDING_COLUMNS, Panel, render_panels, render_recording
from segue.cli import demo
from segue.cli.demo_run import copy_history, list_targets, run_steps
from segue.cli.demo_task import SYSTEM, TOOLS
from segue.cli.table import Row
from segue.emulator import start
from segue.emulator.client import post

_DOCS = Path(__file__).parent.parent / "docs"
_SOURCE, _TARGET = "kimi", "anthropic"
_QUESTION = "What is in notes.txt, and do the tests pass?"
_FIRST_SCRIPT = 'call read_file {"path": "notes.txt"}\ncall run_tests {"path": "tests"}'
_RESULT = "Buy bread."
_NEXT_QUESTION = "Never mind the tests. What do I have to do?"
_NEXT_SCRIPT = "say Buy bread."
_ID = re.compile(r'(?<="id":")[^"]+|(?<="tool_use_id":")[^"]+')
# Longer ids are cut.
_MAX_ID, _CUT_ID = 22, 11


class Exchange(NamedTuple):
    """A request body, the status of its response, and the error or the answer."""

    body: dict[str, Any]
    status: int
    text: str


def run_exchanges() -> tuple[Exchange, Exchange]:
    """Start a task with Kimi and send its next request to Anthropic twice: copied, then converted by segue."""
    models = dict(list_targets())
    chat = segue.Conversation(system=SYSTEM, tools=TOOLS)
    chat.add_user(_QUESTION)
    with start(_SOURCE, script=_FIRST_SCRIPT) as source:
        sent = post(source, chat.render(_SOURCE, models[_SOURCE]).body)
        reply = chat.add_reply(sent.body, source=_SOURCE)
    answered, cancelled = reply.calls
    chat.add_result(answered, _RESULT)
    chat.cancel(cancelled)
    chat.add_user(_NEXT_QUESTION)
    converted = chat.render(_TARGET, models[_TARGET]).body
    with start(_TARGET, script=_NEXT_SCRIPT) as target:
        exchanges: list[Exchange] = []
        for body in (copy_history(chat.messages, _TARGET, converted), converted):
            status = post(target, body).status
            record = target.requests[-1]
            exchanges.append(Exchange(body, status, record.refused or record.text))
    return exchanges[0], exchanges[1]


def draw_picture() -> str:
    """Draw both exchanges as an SVG; ids and what segue added are highlighted."""
    copied, converted = run_exchanges()
    lines, converted_lines = list(_list_blocks(copied.body)), list(_list_blocks(converted.body))
    known = {_ID.sub("", text) for _, text in lines}
    added = {text for _, text in converted_lines if _ID.sub("", text) not in known}
    return render_panels(
        [
            Panel(
                "✗ Kimi's history sent to Anthropic, only the field names converted",
                _format_exchange(copied, lines, set(), "bold red"),
                accepted=copied.status == 200,
            ),
            Panel(
                "✓ The same history through segue",
                _format_exchange(converted, converted_lines, added, "bold green"),
                accepted=converted.status == 200,
            ),
        ],
        title="A history with tool calls: refused as it is, accepted through segue",
    )


def _list_blocks(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield role and JSON of each content block; a text alone is one."""
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield message["role"], msgspec.json.encode(block).decode()


def _format_exchange(exchange: Exchange, lines: Sequence[tuple[str, str]], added: Set[str], style: str) -> list[Row]:
    blocks = [[("dim", f"{role:<10}"), *_highlight(text, style, whole=text in added)] for role, text in lines]
    return [*blocks, [], [(style, f"HTTP {exchange.status}  {exchange.text}")]]


def _highlight(text: str, style: str, *, whole: bool) -> Row:
    """Return the text with its ids, or all of it, in this style; long ids are cut."""
    short = _ID.sub(lambda match: match[0] if len(match[0]) <= _MAX_ID else f"{match[0][:_CUT_ID]}…", text)
    if whole:
        return [(style, short)]
    row: Row = []
    end = 0
    for match in _ID.finditer(short):
        row += [("", short[end : match.start()]), (style, match[0])]
        end = match.end()
    return [*row, ("", short[end:])]


def draw_recording() -> str:
    """Draw the demo as an SVG that moves."""
    halves = {"naive": list(run_steps(naive=True)), "segue": list(run_steps())}
    return render_recording(demo.render(halves, RECORDING_COLUMNS))


if __name__ == "__main__":
    (_DOCS / "refused-accepted.svg").write_text(draw_picture(), "utf-8")
    (_DOCS / "demo.svg").write_text(draw_recording(), "utf-8")

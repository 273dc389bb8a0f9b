"""A day of work in one chat: 30 exchanges with four providers, edits, undo, compaction, attachments, a kill, a resume.

Judged by the bodies that the strict emulators recorded: no request is rejected, every call has its one result, and each
request repeats the one before it from its first byte, so that the provider's prompt cache is used. Where the history is
changed on purpose (a compaction, an undone exchange, another model) the next request begins a new prefix.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from segue.emulator import Emulator
from tests.cli.process import environment
from tests.cli.terminal_session import PROMPT, TerminalSession

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PROVIDERS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic/claude-sonnet-5"),
    "kimi": ("MOONSHOT_API_KEY", "MOONSHOT_BASE_URL", "moonshot/kimi-k2.6"),
    "openai-responses": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai/gpt-5.6-tera"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "gemini/gemini-3.8-flash"),
}
SCRIPTS = {
    "anthropic": """
        think The user greets me.
        say Good morning. What shall we do?
        ---
        say I write it.
        call write_file {"path": "plan.md", "content": "# Plan\\n\\n- bread\\n"}
        ---
        say The plan is in plan.md.
        ---
        call edit_file {"path": "plan.md", "old_string": "- bread", "new_string": "- milk"}
        ---
        say Milk it is.
        ---
        call read_file {"path": "plan.md"}
        call read_file {"path": "notes.txt"}
        ---
        say The plan has milk, the notes have bread.
        ---
        say A very small picture of a cat.
        ---
        call shell {"command": "seq 3000"}
        ---
        say The shell counts to 3,000.
        ---
        say The list, and how to count it:

          | what | how many |
          |------|---------:|
          | milk | 2 |
          | bread | 1 |

          ```python
          def total(items):
              return sum(items)  # all of them
          ```
        ---
        say Until later.
        ---
        say Welcome back (a9).
        ---
        say Good night (a10).
    """,
    "kimi": """
        think I look at the plan first.
        call read_file {"path": "plan.md"}
        ---
        say The plan has one line: milk.
        ---
        call edit_file {"path": "plan.md", "old_string": "- milk", "new_string": "- oats"}
        ---
        say Now it is oats.
        ---
        say One (k3).
        ---
        say Two (k4).
        ---
        call grep {"pattern": "oats"}
        call glob {"pattern": "*.md"}
        ---
        say Found (k5).
        ---
        say Three (k6).
        ---
        call write_file {"path": "plan.md", "content": "other"}
        ---
        say Replaced (k7).
    """,
    "openai-responses": """
        think Let me see.
        call list_dir {"path": "."}
        ---
        say Listed (o1).
        ---
        call write_file {"path": "extra.txt", "content": "extra"}
        ---
        say Written (o2).
        ---
        say Three (o3).
        ---
        say Four (o4).
        ---
        say The user shops for milk (summary).
        ---
        say After the compaction (o5).
        ---
        say Six (o6).
        ---
        say Beginning of something
        wait 3600
    """,
    "gemini": """
        call read_file {"path": "notes.txt"}
        ---
        say Resumed (g1).
        ---
        call edit_file {"path": "plan.md", "old_string": "# Plan", "new_string": "# The plan"}
        ---
        say Renamed (g2).
        ---
        say Three (g3).
        ---
        say Four (g4).
        ---
        say Five (g5).
        ---
        say Six (g6).
    """,
}

# The compaction sends the text that is summarised to OpenAI, then the shorter history; Claude gets that one later.
BREAKS = {"openai-responses": 2, "anthropic": 1}


class Day:
    """A folder with providers, and the chat that is open."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.work, home = folder / "work", folder / "home"
        self.work.mkdir()
        home.mkdir()
        (self.work / "notes.txt").write_text("Buy bread.\n")
        (self.work / "cat.png").write_bytes(PNG)
        self._stack = stack
        self._variables = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "SEGUE_STORE": str(folder / "day.db"),
        }
        self.emulators: dict[str, Emulator] = {}
        for api, (key, url, _) in PROVIDERS.items():
            emulator = stack.enter_context(segue.emulator.start(api, script=SCRIPTS[api]))
            self.emulators[api] = emulator
            self._variables |= {key: "a-key-for-tests", url: emulator.base_url}
        self.exchanges = 0
        self.seat: TerminalSession

    def open(self, *arguments: str) -> None:
        allowed = [word for name in ("write_file", "edit_file", "shell") for word in ("--allow", name)]
        session = TerminalSession(
            "chat", *arguments, *allowed, environment=environment(**self._variables), folder=self.work
        )
        self.seat = self._stack.enter_context(session)
        self.seat.wait_for_text(PROMPT)

    def ask(self, text: str, answer: str) -> None:
        self.exchanges += 1
        self.seat.enter(text)
        self.seat.wait_for_text(answer)

    def switch(self, api: str) -> None:
        model = PROVIDERS[api][2]
        self.seat.enter(f"/model {model}")
        self.seat.wait_for_text(f"{model}")

    def kill(self) -> None:
        os.kill(self.seat.pid, signal.SIGKILL)
        self.seat.wait_exit()


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    with ExitStack() as stack:
        yield Day(tmp_path, stack)


def test_a_day_of_work(day: Day) -> None:
    day.open("-m", PROVIDERS["anthropic"][2])
    _work_with_claude(day)
    _work_with_kimi(day)
    _work_with_openai(day)
    _work_with_gemini(day)
    day.switch("anthropic")
    day.ask("I am back", "(a9)")
    day.ask("good night", "(a10)")
    day.seat.enter("/exit")
    assert day.seat.wait_exit() == 0
    assert day.exchanges == 30
    for api, emulator in day.emulators.items():
        assert [request for request in emulator.requests if not request.accepted] == [], api
        assert_paired(api, emulator)
    _assert_prefixes(day)


def _work_with_claude(day: Day) -> None:
    day.ask("good morning", "What shall we do?")
    day.ask("write a plan", "The plan is in plan.md.")
    day.ask("milk instead", "Milk it is.")
    assert (day.work / "plan.md").read_text() == "# Plan\n\n- milk\n"
    day.ask("read both", "the notes have bread.")
    day.ask("what is on @cat.png ?", "small picture of a cat.")
    day.ask("try the shell", "counts to 3,000.")
    day.ask("show a table", "how to count it:")
    day.seat.wait_for_text("def total(items):", "─┼─")
    day.ask("see you", "Until later.")


def _work_with_kimi(day: Day) -> None:
    day.switch("kimi")
    day.ask("look at the plan", "one line: milk.")
    day.ask("oats instead", "Now it is oats.")
    assert "- oats" in (day.work / "plan.md").read_text()
    for number, text in ((3, "one"), (4, "two"), (5, "search"), (6, "three")):
        day.ask(text, f"(k{number})")
    day.ask("write another plan", "Replaced (k7).")
    assert (day.work / "plan.md").read_text() == "other"
    day.seat.enter("/undo")
    day.seat.wait_for_text("undone")
    assert "- oats" in (day.work / "plan.md").read_text()


def _work_with_openai(day: Day) -> None:
    day.switch("openai-responses")
    day.ask("list it", "(o1)")
    day.ask("write the extra file", "(o2)")
    day.ask("three", "(o3)")
    day.ask("four", "(o4)")
    day.seat.enter("/compact")
    day.seat.wait_for_text("compressed (")
    day.ask("go on", "(o5)")
    day.ask("six", "(o6)")
    day.ask("begin something", "Beginning of something")
    day.kill()


def _work_with_gemini(day: Day) -> None:
    day.open("-c", "-m", PROVIDERS["gemini"][2])
    day.ask("where were we?", "(g1)")
    day.ask("rename the plan", "(g2)")
    assert (day.work / "plan.md").read_text().startswith("# The plan")
    for number, text in ((3, "three"), (4, "four"), (5, "five"), (6, "six")):
        day.ask(text, f"(g{number})")


# --------------------------------------------------------------------------------------------------------- bodies


def assert_paired(api: str, emulator: Emulator) -> None:
    """In every body, each call has one result and each result its call."""
    found = 0
    for request in emulator.requests:
        calls, results = _call_ids(api, request.body or {})
        assert sorted(calls) == sorted(results), json.dumps(request.body)
        assert len(set(calls)) == len(calls), json.dumps(request.body)
        found += len(calls)
    assert found, api


def _call_ids(api: str, body: dict[str, Any]) -> tuple[list[str], list[str]]:
    calls: list[str] = []
    results: list[str] = []
    for value in _objects(body):
        match api:
            case "anthropic":
                calls += [value["id"]] if value.get("type") == "tool_use" else []
                results += [value["tool_use_id"]] if value.get("type") == "tool_result" else []
            case "kimi":
                calls += [value["id"]] if value.get("type") == "function" and "id" in value else []
                results += [value["tool_call_id"]] if value.get("role") == "tool" else []
            case "openai-responses":
                calls += [value["call_id"]] if value.get("type") == "function_call" else []
                results += [value["call_id"]] if value.get("type") == "function_call_output" else []
            case _:
                calls += [value["functionCall"]["id"]] if "functionCall" in value else []
                results += [value["functionResponse"]["id"]] if "functionResponse" in value else []
    return calls, results


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _assert_prefixes(day: Day) -> None:
    """Each body begins as the one before it to the same provider, except where the history was changed on purpose."""
    for api, emulator in day.emulators.items():
        bodies = [_without_markers(request.body or {}) for request in emulator.requests]
        breaks = [at for at in range(1, len(bodies)) if not _continues(bodies[at - 1], bodies[at])]
        assert len(breaks) == BREAKS.get(api, 0), (api, breaks)


def _without_markers(value: Any) -> Any:
    """Return a body without cache markers, which move with each request; a marked text is a block of text."""
    if isinstance(value, dict):
        kept = {key: _without_markers(inner) for key, inner in value.items() if key != "cache_control"}
        if isinstance(kept.get("content"), str) and kept.get("role") == "user":
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [_without_markers(inner) for inner in value] if isinstance(value, list) else value


def _continues(before: dict[str, Any], after: dict[str, Any]) -> bool:
    key = next(name for name in ("messages", "input", "contents") if name in before)
    same = all(before.get(name) == after.get(name) for name in ("system", "tools", "instructions", "systemInstruction"))
    return same and after[key][: len(before[key])] == before[key]

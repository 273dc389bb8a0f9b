"""The first use in a process imports only what it needs, also if several threads begin at once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import segue
from segue.wire.detect_body import CONVERSATION_KEYS
from segue.wire.registry import SERVERS, WIRES
from segue.wire.text.names import TEXT_FORMAT_NAMES
from segue.wire.text.registry import TEXT_FORMATS

BODY = {"messages": [{"role": "user", "content": "hi"}]}
PRINT_MODULES = "print(*sorted(name for name in sys.modules if name.startswith('segue.')), sep='\\n')"
CONVERT_IN_THREADS = """
import json, sys, threading
names = sys.argv[1:]
start, made = threading.Barrier(len(names)), {}
def convert(name):
    start.wait()
    import segue
    made[name] = segue.convert({"messages": [{"role": "user", "content": "hi"}]}, target=name).data.decode()
threads = [threading.Thread(target=convert, args=[name]) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(made))
"""


def run(script: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True, text=True).stdout


def imported_by(statement: str) -> set[str]:
    return set(run(f"import sys, segue\nbody = {BODY}\n{statement}\n{PRINT_MODULES}").split())


def packages(imported: set[str]) -> set[str]:
    """Return the packages and dialects of the registry among imported modules."""
    rows = {f"segue.wire.{name.replace('-', '_')}" for name, wire in WIRES.items() if wire.on is None}
    return {name for name in imported if name in rows or name.startswith("segue.wire.dialects.")}


def test_names_of_text_formats() -> None:
    assert tuple(TEXT_FORMATS) == TEXT_FORMAT_NAMES


def test_first_conversion_imports_what_it_needs() -> None:
    imported = imported_by("segue.convert(body, source='openai-chat', target='anthropic').data")
    assert packages(imported) == {"segue.wire.openai_chat", "segue.wire.anthropic"}
    unneeded = ("segue._stream", "segue.reply", "segue.canonical.compress", "segue.canonical.tokens")
    assert imported.isdisjoint(unneeded)
    assert not {name for name in imported if name.endswith((".stream_in", ".stream_out"))}
    assert not {name for name in imported if name.startswith("segue.wire.stream.")}
    text_modules = {name for name in imported if name.startswith("segue.wire.text.")}
    assert text_modules == {f"segue.wire.text.{name}" for name in ("names", "prompting", "text_format")}


@pytest.mark.parametrize(("target", "module"), [("kimi", "dialects.kimi"), ("gemini", "gemini")])
def test_detection_imports_what_it_needs(target: str, module: str) -> None:
    imported = imported_by(f"segue.convert({{**body, 'model': 'gpt-5'}}, target={target!r}).data")
    assert packages(imported) == {"segue.wire.openai_chat", f"segue.wire.{module}"}


def test_conversation_keys() -> None:
    assert {wire.conversation_key for wire in (*WIRES.values(), *SERVERS.values())} == CONVERSATION_KEYS


def test_first_conversions_in_several_threads() -> None:
    names = [*WIRES, "groq", "moonshot", "deepseek-responses"]
    made = json.loads(run(CONVERT_IN_THREADS, *names))
    assert made == {name: segue.convert(BODY, target=name).data.decode() for name in names}

"""JSON on a terminal has only printable characters, and the same value as in a pipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import segue.cli
from segue.view.sanitize import escape_json
from tests.budget import examples
from tests.cli.process import run
from tests.cli.store_cli import StoreCli
from tests.cli.terminal import run_in_terminal

# Bidirectional overrides and isolates, C0, C1, DEL, zero-width, line separators, a byte order mark, tags.
HOSTILE = "a\u202eb\u2066c\x9b31md\x85e\x7ff\x1bg\u200bh\u2028i\ufeffj\U000e0041k\xadl\u061cm\x00n日本é😀"
BODY = {
    "model": "m",
    "messages": [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": json.dumps({HOSTILE: HOSTILE})}},
        ]},
        {"role": "tool", "tool_call_id": "missing", "content": HOSTILE},
    ],
    HOSTILE: 1,
}  # fmt: skip


def is_clean(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(examples(1))
@given(VALUES, st.sampled_from([None, 2]))
def test_escaped_json_has_the_same_value(value: Any, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=indent).encode(errors="replace")
    escaped = escape_json(data)
    assert is_clean(escaped.decode())
    assert msgspec.json.decode(escaped) == msgspec.json.decode(data)


@pytest.mark.parametrize(
    ("data", "escaped"),
    [
        (b'{"a":"b"}\n', b'{"a":"b"}\n'),
        ('"日本 é😀"'.encode(), '"日本 é😀"'.encode()),
        ('"\u202e\x9b\x7f"'.encode(), rb'"\u202e\u009b\u007f"'),
        ('"\U000e0041"'.encode(), rb'"\udb40\udc41"'),
        (b'{"a":1,\r"b":2}\r\n', b'{"a":1,\n"b":2}\n'),
    ],
)
def test_escapes(data: bytes, escaped: bytes) -> None:
    assert escape_json(data) == escaped


@pytest.fixture(scope="module")
def body_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("bodies") / "body.json"
    file.write_bytes(json.dumps(BODY, ensure_ascii=False).encode())
    return str(file)


COMMANDS = {
    "convert": ["convert", "--from", "openai-chat", "--to", "anthropic"],
    "convert, with the report": ["convert", "--from", "openai-chat", "--to", "anthropic", "--json"],
    "convert, report on stderr": [
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "openai-responses",
        "--report",
        "-",
        "-v",
    ],
    "repair": ["repair", "--api", "openai-chat"],
    "repair --json": ["repair", "--api", "openai-chat", "--json"],
    "check": ["check", "--api", "openai-chat"],
    "check --json": ["check", "--api", "openai-chat", "--json"],
    "extract": ["extract"],
    "extract --json": ["extract", "--json"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_clean_json(name: str, body_file: str) -> None:
    shown = run_in_terminal(*COMMANDS[name], body_file, NO_COLOR="1")
    assert "日本" in shown or "check" in name
    assert is_clean(shown)


def find_values(text: str) -> list[Any]:
    """The JSON values, each on a line of its own."""
    return [json.loads(line) for line in text.split("\n") if line.startswith("{")]


@pytest.mark.parametrize("name", ["convert", "convert, with the report", "repair --json", "check --json"])
def test_values_are_the_same_in_a_pipe(name: str, body_file: str) -> None:
    piped = run(*COMMANDS[name], body_file)
    assert find_values(run_in_terminal(*COMMANDS[name], body_file, columns=20_000)) == find_values(piped.out.decode())


@pytest.mark.parametrize("form", ["json", "openai-chat", "anthropic", "md", "html"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_exports_are_clean(form: str, more: tuple[str, ...], store_cli: StoreCli, body_file: str) -> None:
    imported = store_cli("import", "--from", "openai-chat", body_file)
    shown = run_in_terminal(
        "export", imported.out.strip(), "--format", form, *more, NO_COLOR="1", SEGUE_STORE=str(store_cli.path)
    )
    assert "日本" in shown
    assert is_clean(shown)


@pytest.mark.parametrize("command", [["log", "show"], ["log", "show", "--json"], ["diag", "--json", "--body"]])
def test_stored_conversations_are_clean(command: list[str], store_cli: StoreCli, body_file: str) -> None:
    imported = store_cli("import", "--from", "openai-chat", body_file)
    shown = run_in_terminal(*command, imported.out.strip(), NO_COLOR="1", SEGUE_STORE=str(store_cli.path))
    assert "日本" in shown
    assert is_clean(shown)


def test_only_streams_writes_bytes() -> None:
    """Every command writes its JSON by `streams.write`."""
    for file in Path(segue.cli.__file__).parent.rglob("*.py"):
        assert file.name == "streams.py" or "stdout.buffer" not in file.read_text(), file

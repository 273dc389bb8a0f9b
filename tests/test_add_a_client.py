"""A new coding client is a folder, a row of the registry and rows of tools. Also the page that lists the files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.record import FOLDER
from tests.test_add_a_wire import PACKAGE, ROOT, Copy

ID = "4dbf372e-eff6-4b38-8e51-7e4e2c50e4ce"
TREE = ROOT / "tests" / "client_acme"
PAGE = "docs/add-a-client.md"


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("acme"), "client_acme")
    for name, before, text in find_insertions():
        copy.insert(name, before, text)
    return copy


def find_insertions() -> list[tuple[str, str, str]]:
    """Return the lines that the page adds to files that exist: in the diff of each, before the line after them."""
    page = (ROOT / PAGE).read_text("utf-8")
    found: list[tuple[str, str, str]] = []
    for name, diff in re.findall(r"`([\w/.]+)`:\n\n```diff\n(.+?)```", page, re.DOTALL):
        lines = diff.splitlines()
        added = [line[1:] for line in lines if line.startswith("+")]
        (before,) = [line[1:] for line in lines if line.startswith(" ")]
        found.append((name, before, "".join(f"{line}\n" for line in added)))
    return found


def test_a_session_is_moved_there_and_back(acme: Copy) -> None:
    first = acme.folder / ".claude" / "projects" / "-home-me-project" / f"{ID}.jsonl"
    first.parent.mkdir(parents=True)
    first.write_bytes((FOLDER / "claude.jsonl").read_bytes())
    before = first.read_bytes()
    moved = acme.run("move", str(first), "--to", "acme", "--json")
    assert moved.code == 0, moved.err
    assert moved.json["command"][:2] == ["acme", "resume"]
    path = Path(moved.json["to"]["path"])
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    calls = [line["block"] for line in lines if line.get("block", {}).get("type") == "tool_use"]
    # The names of tools are those of the rows.
    arguments = [call["input"].keys() for call in calls if call["name"] == "run"]
    assert arguments
    assert all(names == {"cmd"} for names in arguments)
    added = [
        {"role": "user", "block": {"type": "text", "text": "And now?"}},
        {"role": "assistant", "block": {"type": "text", "text": "Done."}},
    ]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in added)
    back = acme.run("move", "--from", "acme", "--to", "claude", "--json")
    assert back.code == 0, back.err
    assert back.json["report"]["action"] == "extended"
    assert first.read_bytes().startswith(before)
    assert b"And now?" in first.read_bytes()[len(before) :]


def test_it_is_started_on_a_gateway(acme: Copy) -> None:
    shown = acme.run("with", "acme", "--emulated", "--print", "--json")
    assert shown.code == 0, shown.err
    assert shown.json["command"][:2] == ["acme", "--url"]
    assert shown.json["variables"].keys() == {"ACME_KEY"}


def test_it_is_in_every_list(acme: Copy) -> None:
    for command, name in (("with", "acme"), ("move", "acme"), ("import", "Acme")):
        assert name in acme.run(command, "--help").out.decode().split("\n\n")[-1]
    for arguments in (("with", "nobody"), ("move",)):
        assert "acme" in acme.run(*arguments).err


def test_every_path_on_the_page_exists() -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    paths = re.findall(r"`([\w./-]+(?:\.(?:py|md)|/))`", page)
    assert len(paths) > 12
    named = [path for path in paths if not path.startswith("sessions/acme/")]
    assert not [path for path in named if not any((base / path).exists() for base in (ROOT, PACKAGE))]
    files = {path for path in paths if path.startswith("sessions/acme/") and path.endswith(".py")}
    assert {str(file.relative_to(TREE)) for file in TREE.rglob("*.py")} == files

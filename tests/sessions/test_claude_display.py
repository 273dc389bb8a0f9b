"""What Claude Code's screen shows of results: each in the form of its tool, else a text."""

from __future__ import annotations

from typing import Any

import pytest

from segue.sessions.claude.writer import display_result

_EDIT = {"file_path": "/p/a.txt", "old_string": "one\ntwo", "new_string": "three"}
_SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def _show(name: str, arguments: Any, content: Any, **fields: Any) -> Any:
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    return display_result(call, {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **fields})


def test_output_of_a_command():
    shown = _show("Bash", {"command": "ls"}, [{"type": "text", "text": "files"}])
    assert (shown["stdout"], shown["stderr"], shown["interrupted"]) == ("files", "", False)


def test_change_of_a_file():
    (hunk,) = _show("Edit", _EDIT, "done")["structuredPatch"]
    assert hunk == {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 1, "lines": ["-one", "-two", "+three"]}


def test_content_of_files():
    assert _show("Write", {"file_path": "/p/a.txt", "content": "new"}, "done")["content"] == "new"
    text = _show("Read", {"file_path": "/p/a.txt", "offset": 5}, "a\nb")
    assert (text["file"]["numLines"], text["file"]["startLine"]) == (2, 5)
    picture = _show("Read", {"file_path": "/p/a.png"}, [{"type": "image", "source": _SOURCE}])
    assert picture["file"]["base64"] == _SOURCE["data"]


def test_found_files_and_lines():
    assert _show("Glob", {"pattern": "*"}, "a\nb")["filenames"] == ["a", "b"]
    assert _show("Grep", {"pattern": "x"}, "a:1:x")["content"] == "a:1:x"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Edit", {"file_path": "/p/a.txt"}), ("Write", {}), ("Read", {}), ("other", {}), ("Edit", "x")],
)
def test_the_text_of_other_tools_and_forms(name: str, arguments: Any):
    assert _show(name, arguments, "TEXT") == "TEXT"


def test_errors_are_texts():
    assert _show("Bash", {"command": "ls"}, "no", is_error=True) == "Error: no"


def test_results_of_servers_and_without_a_call():
    assert _show("mcp__desk__stamp", {}, "TEXT") == [{"type": "text", "text": "TEXT"}]
    assert display_result(None, {"type": "tool_result", "tool_use_id": "x", "content": "TEXT"}) == "TEXT"

"""The data of `segue demo`: one agent's task with five tools, and the scripted replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SYSTEM = "You mend a small repository. Look things up together where you can, change little, say what you did."
_UNREADABLE = "src/calendar.py"
_FIXED = "%V"
TASK = "The nightly build fails since yesterday. Find out why and mend it."


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    members = {key: {"type": "string", "description": text} for key, text in properties.items()}
    schema = {"type": "object", "properties": members, "required": list(members)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    _tool("list_files", "The files of a folder.", folder="Where to look"),
    _tool("read_file", "The text of a file.", path="Which file"),
    _tool("edit_file", "Put a text in place of another.", path="Which file", old="What is there", new="What shall be"),
    _tool("run_tests", "Run the tests below a path.", path="Where they are"),
    _tool("search_issues", "Find issues by text.", query="What to look for"),
]


class ScriptedReply(NamedTuple):
    """One request: the reply as an emulator script, and the next user message. With `interrupts` the user writes it
    while the calls run, which cancels the first of them."""

    script: str
    next_message: str | None = None
    interrupts: bool = False


# One for each API in registry order, then back.
SCRIPTED_REPLIES = (
    ScriptedReply(
        """
think  Three lookups, none needs another: all at once.
say    I look at the folder, the issues and the tests.
call   list_files {"folder": "src"}
call   search_issues {"query": "nightly build"}
call   run_tests {"path": "tests"}
"""
    ),
    ScriptedReply(
        """
think  The tracker is down, but the tests point to dates.
say    The tracker is down, but one test fails, and it is about weeks.
""",
        next_message="Then look into that, and mend it.",
    ),
    ScriptedReply(
        """
think  The code and its test, at once.
say    I read both sides of it.
call   read_file {"path": "src/dates.py"}
call   read_file {"path": "tests/test_dates.py"}
"""
    ),
    ScriptedReply(
        """
say    Weeks are counted from Sunday there. I change the format and run all tests.
call   run_tests {"path": "."}
call   edit_file {"path": "src/dates.py", "old": "%U", "new": "%V"}
""",
        next_message="Stop, not all of them: that takes an hour. Only the one that failed.",
        interrupts=True,
    ),
    ScriptedReply(
        """
think  Only tests/test_dates.py, then.
call   run_tests {"path": "tests/test_dates.py"}
"""
    ),
    ScriptedReply(
        "say    Mended: {run_tests}. Weeks are ISO weeks now.", next_message="Good. Is there an issue about it?"
    ),
    ScriptedReply('call   search_issues {"query": "week number"}'),
    ScriptedReply(
        """
say    There is: {search_issues}. I look at the changelog and the docs before I answer it.
call   read_file {"path": "CHANGELOG.md"}
call   read_file {"path": "docs/dates.md"}
"""
    ),
    ScriptedReply(
        """
say    The changelog should say it.
call   edit_file {"path": "CHANGELOG.md", "old": "- weeks are counted", "new": "- weeks are counted as ISO does"}
"""
    ),
    ScriptedReply(
        "say    Done: the changelog names it, the docs were right already.", next_message="Does anything else use it?"
    ),
    ScriptedReply(
        """
say    I look.
call   list_files {"folder": "."}
call   search_issues {"query": "calendar"}
"""
    ),
    ScriptedReply('call   read_file {"path": "src/calendar.py"}'),
    ScriptedReply("say    src/calendar.py is there, but it can't be read.", next_message="It is generated. Leave it."),
    ScriptedReply("say    Left alone.", next_message="Run all the tests once more, now I have the time."),
    ScriptedReply(
        """
think  All of them this time.
call   run_tests {"path": "."}
"""
    ),
    ScriptedReply("say    {run_tests}.", next_message="Show me the file as it is now."),
    ScriptedReply(
        """
think  The file, and the test that holds it to its word.
call   read_file {"path": "src/dates.py"}
call   read_file {"path": "tests/test_dates.py"}
"""
    ),
    ScriptedReply(
        "say    {read_file} is what the test asks for, and %V gives it.", next_message="Write it down in one line."
    ),
    ScriptedReply("say    week() counted from Sunday (%U); it now counts ISO weeks (%V), and a test holds it to that."),
)


class _ToolError(Exception):
    """The tool failed; the message is the result."""


class DemoTools:
    """The tools on a repository in memory. Edits persist; the first issue search fails, and one file is unreadable."""

    def __init__(self) -> None:
        self._files = {
            "CHANGELOG.md": "## 1.4.0\n- weeks are counted",
            "docs/dates.md": "Weeks begin on Monday.",
            "src/dates.py": "def week(day): return day.strftime('%U')",
            "tests/test_dates.py": "assert week(date(2026, 1, 1)) == '01'",
        }
        self._issues = {"week number": "#41 week() is off by one in January", "calendar": "nothing found"}
        self._tools: dict[str, Callable[..., str]] = {
            "list_files": self._list,
            "read_file": self._read,
            "edit_file": self._edit,
            "run_tests": self._test,
            "search_issues": self._search,
        }

    def run(self, name: str, arguments: Any) -> tuple[bool, str]:
        """Run a tool and return whether it failed, and its result."""
        try:
            return False, self._tools[name](**arguments)
        except _ToolError as error:
            return True, str(error)

    def _list(self, folder: str) -> str:
        inside = "" if folder == "." else f"{folder}/"
        return ", ".join(sorted(path for path in (*self._files, _UNREADABLE) if path.startswith(inside)))

    def _read(self, path: str) -> str:
        if path not in self._files:
            raise _ToolError(f"{path}: permission denied")
        return self._files[path]

    def _edit(self, path: str, old: str, new: str) -> str:
        before = self._read(path)
        if old not in before:
            raise _ToolError(f"{path}: {old!r} is not there")
        self._files[path] = before.replace(old, new)
        return f"{path}: 1 place changed"

    def _test(self, path: str) -> str:
        fixed = _FIXED in self._files["src/dates.py"]
        path = "the whole suite" if path == "." else path
        return f"{path}: all passed" if fixed else f"{path}: 1 failed, test_week: '00' is not '01'"

    def _search(self, query: str) -> str:
        if query not in self._issues:
            raise _ToolError("503, the tracker is down")
        return self._issues[query]

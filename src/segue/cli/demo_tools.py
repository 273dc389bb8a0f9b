"""The five tools of the demo, on a repository in memory. The first issue search fails, and one file is unreadable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["DemoTools"]

_UNREADABLE = "src/calendar.py"
_FIXED = "%V"


class _ToolError(Exception):
    """The tool failed; the message is the result."""


class DemoTools:
    """Runs tools by name; edits persist between calls."""

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
        """Run a tool; returns whether it failed, and its result."""
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

    def _search(self, words: str) -> str:
        if words not in self._issues:
            raise _ToolError("503, the tracker is down")
        return self._issues[words]

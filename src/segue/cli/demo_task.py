"""The data of `segue demo`: one agent's task with five tools, and the scripted replies."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["STOPS", "SYSTEM", "TASK", "TOOLS", "Stop"]

SYSTEM = "You mend a small repository. Look things up together where you can, change little, say what you did."
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
    _tool("search_issues", "Find issues by words.", words="What to look for"),
]


class Stop(NamedTuple):
    """One request: the reply as an emulator script, and the next user message. With `interrupts` the user writes it
    while the calls run, which cancels the first of them."""

    script: str
    user: str | None = None
    interrupts: bool = False


# One for each API in registry order, then back.
STOPS = (
    Stop(
        """
think  Three lookups, none needs another: all at once.
say    I look at the folder, the issues and the tests.
call   list_files {"folder": "src"}
call   search_issues {"words": "nightly build"}
call   run_tests {"path": "tests"}
"""
    ),
    Stop(
        """
think  The tracker is down, but the tests point to dates.
say    The tracker is down, but one test fails, and it is about weeks.
""",
        user="Then look into that, and mend it.",
    ),
    Stop(
        """
think  The code and its test, at once.
say    I read both sides of it.
call   read_file {"path": "src/dates.py"}
call   read_file {"path": "tests/test_dates.py"}
"""
    ),
    Stop(
        """
say    Weeks are counted from Sunday there. I change the format and run all tests.
call   run_tests {"path": "."}
call   edit_file {"path": "src/dates.py", "old": "%U", "new": "%V"}
""",
        user="Stop, not all of them: that takes an hour. Only the one that failed.",
        interrupts=True,
    ),
    Stop(
        """
think  Only tests/test_dates.py, then.
call   run_tests {"path": "tests/test_dates.py"}
"""
    ),
    Stop("say    Mended: {run_tests}. Weeks are ISO weeks now.", user="Good. Is there an issue about it?"),
    Stop('call   search_issues {"words": "week number"}'),
    Stop(
        """
say    There is: {search_issues}. I look at the changelog and the docs before I answer it.
call   read_file {"path": "CHANGELOG.md"}
call   read_file {"path": "docs/dates.md"}
"""
    ),
    Stop(
        """
say    The changelog should say it.
call   edit_file {"path": "CHANGELOG.md", "old": "- weeks are counted", "new": "- weeks are counted as ISO does"}
"""
    ),
    Stop("say    Done: the changelog names it, the docs were right already.", user="Does anything else use it?"),
    Stop(
        """
say    I look.
call   list_files {"folder": "."}
call   search_issues {"words": "calendar"}
"""
    ),
    Stop('call   read_file {"path": "src/calendar.py"}'),
    Stop("say    src/calendar.py is there, but it can't be read.", user="It is generated. Leave it."),
    Stop("say    Left alone.", user="Run all the tests once more, now I have the time."),
    Stop(
        """
think  All of them this time.
call   run_tests {"path": "."}
"""
    ),
    Stop("say    {run_tests}.", user="Show me the file as it is now."),
    Stop(
        """
think  The file, and the test that holds it to its word.
call   read_file {"path": "src/dates.py"}
call   read_file {"path": "tests/test_dates.py"}
"""
    ),
    Stop("say    {read_file} is what the test asks for, and %V gives it.", user="Write it down in one line."),
    Stop("say    week() counted from Sunday (%U); it now counts ISO weeks (%V), and a test holds it to that."),
)

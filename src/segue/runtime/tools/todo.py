"""The tool `todo`, the model's to-do list.

The arguments of a call are the whole list, and its result repeats the list. There is no other state, so a resumed
conversation still has its list.
"""

from __future__ import annotations

from segue.errors import format_count
from segue.runtime.tool_types import Arguments, Context, Tool

_MARKS = {"open": " ", "doing": ">", "done": "x"}


def _run(arguments: Arguments, context: Context) -> str:
    items = arguments["items"]
    if not items:
        return "the list is empty"
    done = sum(item["state"] == "done" for item in items)
    lines = [f"[{_MARKS[item['state']]}] {' '.join(item['text'].split())}" for item in items]
    return "\n".join([*lines, f"{done} of {len(items)} done"])


def _summarize(arguments: Arguments) -> str:
    items = arguments.get("items") or ()
    doing = next((item["text"] for item in items if item.get("state") == "doing"), "")
    return doing or format_count(len(items), "item")


def todo() -> Tool:
    return Tool(
        "todo",
        "Keeps a to-do list for a task of several steps. Send the whole list each time: it replaces the previous one. "
        "Have one item in the state doing at a time, and set it to done as soon as it is finished.",
        {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "description": "All items, in order.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "description": "The step, in a few words."},
                            "state": {"type": "string", "enum": ["open", "doing", "done"]},
                        },
                        "required": ["text", "state"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["items"],
            "additionalProperties": False,
        },
        _run,
        summarize=_summarize,
    )

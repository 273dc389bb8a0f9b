"""`task`: a piece of work for another agent, whose last words are the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from segue.runtime.tooling import Arguments, Context, Result, Tool

__all__ = ["Spawn", "TaskOrder", "task"]

_TIMEOUT = 3600.0


class TaskOrder(Struct, frozen=True):
    """What another agent is to do. Without a model it has this one's; without tools all but `task`."""

    description: str
    prompt: str
    model: str | None = None
    tools: tuple[str, ...] | None = None


Spawn: TypeAlias = Callable[[TaskOrder, Context], Awaitable[Result]]
"""Runs an order to its end. It is cancelled with the call, and passes that on."""


def task(spawn: Spawn) -> Tool:
    async def run(arguments: Arguments, context: Context) -> Result:
        tools = arguments.get("tools")
        return await spawn(
            TaskOrder(
                arguments["description"],
                arguments["prompt"],
                arguments.get("model"),
                None if tools is None else tuple(tools),
            ),
            context,
        )

    return Tool(
        "task",
        "Gives a piece of work to another agent, which works by itself with tools of its own and reports once, at the "
        "end. It knows nothing of this conversation: the prompt has to say everything. Good for a search or a change "
        "that takes many steps; several tasks in one reply run side by side.",
        {
            "type": "object",
            "properties": {
                "description": {"type": "string", "minLength": 1, "description": "The work, in three to six words."},
                "prompt": {"type": "string", "minLength": 1, "description": "What to do, and what to report."},
                "model": {"type": "string", "description": "provider/model to use. Default: this one."},
                "tools": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names of the tools it may use. Default: all that are here.",
                },
            },
            "required": ["description", "prompt"],
            "additionalProperties": False,
        },
        run,
        blocking=False,
        timeout=_TIMEOUT,
        timing="own",
        shown=lambda arguments: str(arguments.get("description", "")),
    )

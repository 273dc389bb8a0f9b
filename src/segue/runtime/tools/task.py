"""The tool `task`, which runs a subagent and returns its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Result, Tool

_TIMEOUT = 3600.0


class SubagentTask(Struct, frozen=True):
    """A task for a subagent. By default it uses the route of the session, and all tools except `task`."""

    description: str
    prompt: str
    model: str | None = None
    tools: tuple[str, ...] | None = None


Spawn: TypeAlias = Callable[[SubagentTask, Context], Awaitable[Result]]
"""Runs a subagent to its end. Cancelling the call cancels it."""
_RequestApproval: TypeAlias = Callable[[str], ApprovalRequest | None]
"""The approval request for using the model of that name, or None."""


def task(spawn: Spawn, request_approval: _RequestApproval = lambda model: None) -> Tool:
    def approval_request(arguments: Arguments, folder: Path) -> ApprovalRequest | None:
        model = arguments.get("model")
        return None if model is None else request_approval(model)

    async def run(arguments: Arguments, context: Context) -> Result:
        tools = arguments.get("tools")
        return await spawn(
            SubagentTask(
                arguments["description"],
                arguments["prompt"],
                arguments.get("model"),
                None if tools is None else tuple(tools),
            ),
            context,
        )

    return Tool(
        "task",
        "Gives a task to another agent, which works by itself with tools of its own and reports once, at the end. It "
        "does not get this conversation: the prompt must contain everything that it needs. Use it for a search or a "
        "change that takes many steps; several tasks in one reply run in parallel.",
        {
            "type": "object",
            "properties": {
                "description": {"type": "string", "minLength": 1, "description": "The work, in three to six words."},
                "prompt": {"type": "string", "minLength": 1, "description": "What to do, and what to report."},
                "model": {
                    "type": "string",
                    "description": "provider/model to use. Default: this one. Another provider needs approval.",
                },
                "tools": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names of the tools that it may use. Default: all except task.",
                },
            },
            "required": ["description", "prompt"],
            "additionalProperties": False,
        },
        run,
        blocking=False,
        timeout=_TIMEOUT,
        timeout_mode="own",
        approval_request=approval_request,
        summarize=_summarize,
    )


def _summarize(arguments: Arguments) -> str:
    model = arguments.get("model")
    return f"{arguments.get('description', '')}{f' → {model}' if model else ''}"

"""The tool `switch_model`, by which the model hands its work to another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from segue.canonical.blocks import Message, ToolCall, responses_of, state_of
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Result, Tool

SWITCH_MODEL = "switch_model"
_Switch: TypeAlias = Callable[[str, str], str]
"""Switches to the model of a name for a reason, and returns the result for the model."""
_RequestApproval: TypeAlias = Callable[[str], ApprovalRequest]


def switch_model(switch: _Switch, request_approval: _RequestApproval, models: Sequence[str] = ()) -> Tool:
    """Make the tool. `models` are names for its description."""

    def approval_request(arguments: Arguments, folder: Path) -> ApprovalRequest:
        return request_approval(arguments["model"])

    async def run(arguments: Arguments, context: Context) -> Result:
        return Result(switch(arguments["model"], arguments["reason"]))

    known = f" Models: {', '.join(models)}." if models else ""
    return Tool(
        SWITCH_MODEL,
        "Hands this conversation to another model, which continues with the next reply: for work that is too hard for "
        f"you, or simpler than you are needed for.{known}",
        {
            "type": "object",
            "properties": {
                "model": {"type": "string", "minLength": 1, "description": "provider/model."},
                "reason": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Why, in a few words."},
            },
            "required": ["model", "reason"],
            "additionalProperties": False,
        },
        run,
        blocking=False,
        approval_request=approval_request,
        summarize=lambda arguments: f"{arguments.get('model', '')}: {arguments.get('reason', '')}",
    )


class RequestedModel(NamedTuple):
    """The model that a call has switched to, the reason, and whether a reply followed."""

    model: str
    reason: str
    has_reply: bool


def find_requested(messages: Sequence[Message]) -> RequestedModel | None:
    """Return the model of the last call."""
    answered: set[str] = set()
    has_reply = False
    for message in reversed(messages):
        answered.update(each.call_id for each in responses_of(message) if state_of(each) == "complete")
        for block in reversed(message.blocks):
            if isinstance(block, ToolCall) and block.name == SWITCH_MODEL and block.id in answered:
                return RequestedModel(block.arguments["model"], block.arguments["reason"], has_reply)
        has_reply = has_reply or message.speaker == "ai"
    return None

"""Runs a tool as a session does, with an approver."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import ApprovalRequest, Context, Result, Tool, ToolError
from segue.runtime.toolbox import Toolbox


def text_of(result: Any) -> str:
    content = result.content if isinstance(result, Result) else result
    assert isinstance(content, str), content
    return content


def run(tool: Tool, folder: Path, **arguments: Any) -> Any:
    """The result of one call, without approval."""

    async def go() -> Any:
        result: Any = tool.run(arguments, Context(folder))
        return await result if inspect.isawaitable(result) else result

    return asyncio.run(go())


def run_for_text(tool: Tool, folder: Path, **arguments: Any) -> str:
    return text_of(run(tool, folder, **arguments))


class RecordingApprover:
    """Gives the same answer to each question and records the questions."""

    def __init__(self, answer: Any = "once") -> None:
        self.answer = answer
        self.questions: list[ApprovalRequest] = []

    async def __call__(self, question: ApprovalRequest) -> Any:
        self.questions.append(question)
        return self.answer


def run_with_approval(
    tool: Tool,
    folder: Path,
    arguments: Any,
    *,
    approver: RecordingApprover | None = None,
    before_run: Any = None,
    **rules: Any,
):
    """A whole call: approval, then run. `between` is called after the approval and before the run."""

    async def go() -> str:
        box = Toolbox([tool], folder, Permissions(folder=folder, **rules))
        found = box.find(tool.name)
        assert found is not None
        if fault := box.validate_arguments(found, arguments):
            return fault
        try:
            if refusal := await box.check_permission(found, arguments, approver):
                return refusal
        except ToolError as error:
            return str(error)
        if before_run is not None:
            before_run()
        try:
            result: Any = found.run(arguments, Context(folder))
            return text_of(await result if inspect.isawaitable(result) else result)
        except ToolError as error:
            return f"error: {error}"

    return asyncio.run(go())

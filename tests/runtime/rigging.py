"""What the tests of tools share: running one as a session would, with somebody who answers."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

from segue.runtime.permissions import Permissions
from segue.runtime.toolbox import Toolbox
from segue.runtime.tooling import Context, Question, Result, Tool, ToolError


def text_of(result: Any) -> str:
    content = result.content if isinstance(result, Result) else result
    assert isinstance(content, str), content
    return content


def run(tool: Tool, folder: Path, **arguments: Any) -> Any:
    """The result of one call; whoever calls has been given leave."""

    async def go() -> Any:
        result: Any = tool.run(arguments, Context(folder))
        return await result if inspect.isawaitable(result) else result

    return asyncio.run(go())


def say(tool: Tool, folder: Path, **arguments: Any) -> str:
    return text_of(run(tool, folder, **arguments))


class Somebody:
    """Answers each question alike, and remembers it."""

    def __init__(self, answer: Any = "once") -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        return self.answer


def play(
    tool: Tool, folder: Path, arguments: Any, *, somebody: Somebody | None = None, between: Any = None, **rules: Any
):
    """A whole call: asked about, and run if it may. `between` happens after the answer and before the run."""

    async def go() -> str:
        box = Toolbox([tool], folder, Permissions(folder=folder, **rules))
        found = box.find(tool.name)
        assert found is not None
        if fault := box.check(found, arguments):
            return fault
        if refusal := await box.may(found, arguments, somebody):
            return refusal
        if between is not None:
            between()
        try:
            result: Any = found.run(arguments, Context(folder))
            return text_of(await result if inspect.isawaitable(result) else result)
        except ToolError as error:
            return f"error: {error}"

    return asyncio.run(go())

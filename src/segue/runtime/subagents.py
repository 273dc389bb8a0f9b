"""Subagents: a call of the tool `task` runs a `Session` with its own history, scheduler and tools.

The events of a subagent have the id of the `task` call, its answer is the result of that call, and cancelling the call
cancels it. The tool `switch_model` uses another model for the session itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from segue.bridge.providers import Endpoint
from segue.errors import InputError
from segue.runtime.events import ExchangeEnded
from segue.runtime.routing import Fixed, Route
from segue.runtime.tool_types import ApprovalRequest, ApprovalScope, Context, Result, Tool, ToolError
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools.switch_model import SWITCH_MODEL, switch_model
from segue.runtime.tools.task import SubagentTask, task

if TYPE_CHECKING:
    from segue.runtime.session import SessionServices

ModelResolver: TypeAlias = Callable[[str], Endpoint]
"""Resolves a name `provider/model`; raises `InputError` if there is no such model."""

SUBAGENT_SYSTEM = (
    "You work on one task for another agent. It reads only your final answer, and questions are not answered. Do the "
    "task with your tools, then give the result in one answer: what the task requests, and what else the other agent "
    "needs for its work. List what could not be done."
)
_MAX_TITLE = 60


class _ParentSession(Protocol):
    """The part of a session that its subagents use."""

    @property
    def route(self) -> Route: ...
    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def services(self) -> SessionServices: ...
    def switch(self, endpoint: Endpoint, why: str = "chosen") -> None: ...
    async def run_subagent(
        self, prompt: str, *, title: str, route: Route, toolbox: Toolbox, task: str
    ) -> ExchangeEnded: ...


class Subagents:
    """Starts the subagents of a session: of the one that was last made with them. `tool` is for its toolbox."""

    parent: _ParentSession

    def __init__(self, models: ModelResolver) -> None:
        self._models = models
        self.tool = task(self.spawn, self.approval_request)

    def approval_request(self, model: str) -> ApprovalRequest | None:
        """Return the approval request for using a model; not `needed` if the session's route uses the same provider."""
        endpoint = self._find_endpoint(model)
        known = {(each.provider, each.base_url) for each in self.parent.route.endpoints}
        title = f"send a task to {endpoint.name} at {endpoint.base_url}"
        needed = (endpoint.provider, endpoint.base_url) not in known
        scopes = (ApprovalScope(f"all models of {endpoint.provider}", (f"task({endpoint.provider}/*)",)),)
        return ApprovalRequest(
            "task", endpoint.name, title, needed=needed, aliases=(model,), changes=False, scopes=scopes
        )

    def make_switch_tool(self, models: Sequence[str]) -> Tool:
        """Return the tool by which the model switches to another one, of which these are named to it."""
        return switch_model(self._switch, self._request_switch, models)

    def _request_switch(self, model: str) -> ApprovalRequest:
        endpoint = self._find_endpoint(model)
        cost = self.parent.services.switch_cost(endpoint)
        return ApprovalRequest(
            SWITCH_MODEL,
            endpoint.name,
            f"switch to {endpoint.name} at {endpoint.base_url}",
            str(cost or ""),
            aliases=(model,),
            changes=False,
        )

    def _switch(self, model: str, reason: str) -> str:
        endpoint = self._find_endpoint(model)
        if endpoint.lacks_key:
            raise ToolError(f"there is no key for {endpoint.name}; this model continues")
        self.parent.switch(endpoint, f"requested by the model: {reason}")
        return f"{endpoint.name} continues with the next reply"

    def _find_endpoint(self, model: str) -> Endpoint:
        try:
            return self._models(model)
        except InputError as error:
            raise ToolError(str(error)) from None

    def _choose_route(self, task: SubagentTask, context: Context) -> Route:
        if not task.model:
            return self.parent.route.for_subagent()
        request = self.approval_request(task.model)
        if request is not None and request.needed and not context.is_granted(request):
            raise ToolError(f"approval is needed and was not given: {request.title}")
        return Fixed(self._find_endpoint(task.model), "named for the task")

    async def spawn(self, task: SubagentTask, context: Context) -> Result:
        """Run a subagent and return its answer."""
        toolbox = self.parent.toolbox.without("task", SWITCH_MODEL)
        if task.tools is not None:
            unknown = [name for name in task.tools if toolbox.find(name) is None]
            if unknown:
                known = ", ".join(tool.name for tool in toolbox.declarations)
                raise ToolError(f"unknown tool {unknown[0]!r}; a task can use {known}")
            toolbox = toolbox.only(task.tools)
        ended = await self.parent.run_subagent(
            task.prompt,
            title=f"task: {task.description}"[:_MAX_TITLE],
            route=self._choose_route(task, context),
            toolbox=toolbox,
            task=context.call_id,
        )
        return Result(ended.text or "(no answer)", error=ended.outcome != "answered")

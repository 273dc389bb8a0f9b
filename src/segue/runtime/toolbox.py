"""`Toolbox`: the tools of a session, their declarations, argument validation and permission checks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema_rs
import msgspec

from segue.canonical.request import Tool as Declaration
from segue.errors import InputError
from segue.runtime.masking import SecretMask, find_hidden_secrets
from segue.runtime.permission_rules import SHELL_TOOLS, parse_rule
from segue.runtime.permissions import Grants, Permissions, validate_tool_name
from segue.runtime.schema_paths import has_more_paths
from segue.runtime.threads import run_in_thread
from segue.runtime.tool_types import ApprovalRequest, Approver, Arguments, Context, Tool
from segue.runtime.tools import standard_names

ToolSource: TypeAlias = Callable[[], Sequence[Tool]]
MAX_DECLARED = 128
"""The default limit of declared tools: what the OpenAI APIs accept (OAI-CHAT-16), and most others."""
_MAX_NAMES_SHOWN = 10
_MAX_PROBLEMS = 8
_MAX_PROBLEM_LENGTH = 300
_MAX_SCHEMA_PATHS = 10_000


class Toolbox:
    """Tools by name, for one working folder and one set of rules.

    `sources` are functions that return the current tools of MCP servers; a tool whose name is already used is dropped.
    If there are more than `max_declared` tools, the last ones of the sources are `left_out`; `tools` never are.
    The `run` of a tool that `find` returns checks approvals and masks secrets; `secrets` returns more of them than the
    environment has: value → name.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        folder: Path,
        permissions: Permissions | None = None,
        *,
        sources: Sequence[ToolSource] = (),
        max_declared: int = MAX_DECLARED,
        secrets: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        if type(max_declared) is not int or max_declared < 1:
            raise InputError(f"a number from 1 was expected, not {max_declared!r}", path="max_declared")
        self.max_declared = max_declared
        self._secrets = secrets
        self.folder = folder
        self.permissions = permissions or Permissions(folder=folder)
        self._own_tools = tuple(tools)
        self._sources = tuple(sources)
        self._selected: frozenset[str] | None = None
        # A rule for a built-in tool is valid in a session without it too.
        self._known_names = standard_names() | _tool_names(self._own_tools) | {*SHELL_TOOLS}
        self._grants = Grants()
        self._last_approval: asyncio.Future[None] | None = None
        self._loaded: tuple[Tool, ...] = ()
        self._tools: dict[str, Tool] = {}
        self._left_out: tuple[str, ...] = ()
        self._validators: dict[str, jsonschema_rs.Validator | None] = {}
        _reject_duplicate_names(self._own_tools)
        _validate_schemas(self._own_tools)
        self._load()

    def _load(self) -> dict[str, Tool]:
        """Return the current tools by name; rebuilt only if the sources return other tools."""
        tools = (*self._own_tools, *(tool for source in self._sources for tool in source()))
        if tools != self._loaded or not self._tools:
            by_name: dict[str, Tool] = {}
            for tool in tools:
                if tool.name not in by_name and (self._selected is None or tool.name in self._selected):
                    by_name[tool.name] = replace(tool, run=partial(self._run_masked, tool))
            self._loaded, self._validators = tools, {}
            count = max(self.max_declared, len(self._own_tools))
            self._left_out = tuple(by_name)[count:]
            self._tools = dict(sorted(list(by_name.items())[:count]))
        return self._tools

    def _run_masked(self, tool: Tool, arguments: Arguments, context: Context) -> Any:
        mask = self._secret_mask()

        def progress(text: str) -> None:
            context.progress(mask.mask_text(text))

        def is_allowed(request: ApprovalRequest) -> bool:
            return self.permissions.decide(request)[0] == "allow"

        def check_permission(request: ApprovalRequest) -> Awaitable[str | None]:
            masked = msgspec.structs.replace(request, title=mask.mask_text(request.title))
            return self.permissions.check(masked, context.approve)

        try:
            value = tool.run(
                arguments,
                replace(
                    context,
                    is_granted=self._grants.consume,
                    is_denied=self.permissions.denies,
                    is_allowed=is_allowed,
                    check_permission=check_permission,
                    progress=progress,
                ),
            )
        except Exception as error:
            if (masked := mask.mask_error(error)) is error:
                raise
            raise masked from None
        return mask.mask_awaitable(value) if inspect.isawaitable(value) else mask.mask(value)

    def _secret_mask(self) -> SecretMask:
        """Return a mask for all secrets that are hidden from any of the tools."""
        sources = [tool.hidden_secrets for tool in self._loaded if tool.hidden_secrets is not None] or [
            find_hidden_secrets
        ]
        hidden = {value: name for find_secrets in sources for value, name in find_secrets().items()}
        return SecretMask({**self._secrets(), **hidden})

    # ------------------------------------------------------------------------------------------------------------ tools

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._load())

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of the tools that exceed the limit: the model can't call them."""
        self._load()
        return self._left_out

    @property
    def limit_note(self) -> str:
        """The number and the names of the tools that exceed the limit, as text; empty if there are none."""
        left_out = self.left_out
        return f"more than {self.max_declared} tools: {format_left_out(left_out)}" if left_out else ""

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """The tool declarations for the model, sorted by name."""
        return tuple(Declaration(tool.name, tool.description, tool.parameters) for tool in self._load().values())

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, or None."""
        return self._load().get(name)

    def with_tools(self, *tools: Tool) -> Toolbox:
        """Return a toolbox with additional tools."""
        _reject_duplicate_names((*self._own_tools, *tools))
        _validate_schemas(tools)
        selected = None if self._selected is None else self._selected | _tool_names(tools)
        return self._derive((*self._own_tools, *tools), selected)

    def only(self, names: Iterable[str]) -> Toolbox:
        """Return a toolbox with only these tools."""
        selected = frozenset(names)
        if missing := sorted(selected.difference(self.names, self.left_out)):
            known = ", ".join(sorted(self.names))
            raise InputError(f"unknown tool {', '.join(missing)}; known tools: {known}", path="tools")
        return self._derive(tuple(tool for tool in self._own_tools if tool.name in selected), selected)

    def without(self, *names: str) -> Toolbox:
        """Return a toolbox with all tools except these."""
        return self.only(name for name in self.names if name not in names)

    def _derive(self, tools: Sequence[Tool], selected: frozenset[str] | None) -> Toolbox:
        other = copy(self)
        other._own_tools, other._selected = tuple(tools), selected
        other._known_names |= _tool_names(tools)
        other._grants, other._last_approval = Grants(), None
        other._tools = {}
        other._load()
        return other

    def allow(self, rule: str) -> None:
        """Add an allow rule for this session; `InputError` if it is invalid or its tool is unknown."""
        validate_tool_name(parse_rule(rule), self._known_names.union(self.names), "allow")
        self.permissions.allow(rule)

    def validate_rules(self) -> None:
        """Raise `InputError` for a permission rule with an unknown tool. Without any tools nothing is checked."""
        if self._load():
            self.permissions.validate_tool_names(self._known_names.union(self.names))

    # ----------------------------------------------------------------------------------------------------------- checks

    def validate_arguments(self, tool: Tool, arguments: Arguments) -> str | None:
        """Validate the arguments against the schema; return an error text for the model, or None.

        Arguments are not validated against a schema with so many paths that it would block the event loop.
        """
        if tool.name not in self._validators:
            is_costly = has_more_paths(tool.parameters, _MAX_SCHEMA_PATHS)
            self._validators[tool.name] = None if is_costly else _make_validator(tool.parameters)
        validator = self._validators[tool.name]
        if validator is None or validator.is_valid(dict(arguments)):
            return None
        lines: list[str] = []
        for error in validator.iter_errors(dict(arguments)):
            if len(lines) == _MAX_PROBLEMS:
                lines.append("and more")
                break
            lines.append(_format_problem(error))
        # One line: user interfaces show only the first, which must have the reason.
        return f"invalid arguments for {tool.name}, which did not run: {'; '.join(lines)}"

    async def check_permission(self, tool: Tool, arguments: Arguments, approve: Approver | None) -> str | None:
        """Return None if the call may run, else the denial text for the model; `ToolError` if it is not possible."""
        previous, own = self._queue_approval()
        try:
            # In a thread: it reads files and looks up host names.
            request = await run_in_thread(tool.approval_request, arguments, self.folder)
            request = request or ApprovalRequest(tool.name, "", tool.name, needed=False)
            if approve is not None and self.permissions.decide(request)[0] == "ask":
                await asyncio.shield(previous)
            denial = await self.permissions.check(request, approve)
        finally:
            previous.add_done_callback(lambda _: own.done() or own.set_result(None))
        if denial is None and request.needed:
            self._grants.add(request)
        return denial

    def _queue_approval(self) -> tuple[asyncio.Future[None], asyncio.Future[None]]:
        """Return (previous, own) futures, so that approvals are requested in call order."""
        loop = asyncio.get_running_loop()
        previous, own = self._last_approval, loop.create_future()
        if previous is None or previous.get_loop() is not loop:
            previous = loop.create_future()
            previous.set_result(None)
        self._last_approval = own
        return previous, own


def _tool_names(tools: Iterable[Tool]) -> frozenset[str]:
    return frozenset(tool.name for tool in tools)


def _reject_duplicate_names(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"duplicate tool name {', '.join(duplicates)}; rename one of the tools", path="tools")


def _validate_schemas(tools: Iterable[Tool]) -> None:
    for tool in tools:
        if error := find_schema_error(tool.parameters):
            raise InputError(
                f"the parameters of the tool {tool.name!r} are not a valid JSON Schema: {error}", path="tools"
            )


def _make_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)
    return jsonschema_rs.validator_for(dict(schema), offline=True, pattern_options=options)


def find_schema_error(schema: Mapping[str, Any]) -> str | None:
    """Return the error of an invalid JSON Schema in one line, or None."""
    try:
        _make_validator(schema)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        return str(error).partition("\n")[0]
    return None


def format_left_out(tools: Sequence[object]) -> str:
    """Return the number and the first names of tools that are left out."""
    more = len(tools) - _MAX_NAMES_SHOWN
    names = [*(str(tool) for tool in tools[:_MAX_NAMES_SHOWN]), *([f"and {more:,} more"] if more > 0 else [])]
    return f"{len(tools):,} left out: {', '.join(names)}"


def _format_problem(error: jsonschema_rs.ValidationError) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    message = " ".join(error.message.split())
    if len(message) > _MAX_PROBLEM_LENGTH:
        message = f"{message[: _MAX_PROBLEM_LENGTH // 2]} … {message[-_MAX_PROBLEM_LENGTH // 2 :]}"
    return f"{where.removeprefix('.') or 'arguments'}: {message}"

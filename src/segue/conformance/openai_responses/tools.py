"""Tools, their names and namespaces: OAI-RESP-18 and 19."""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.openai_responses.request import ResponsesRequest, Tool
from segue.conformance.rule import Finding, Severity, Table
from segue.conformance.values import is_list, is_object, is_text, kind, quoted, text_of
from segue.models import Model

__all__ = ["TOOL_TYPES", "table"]

table: Table[ResponsesRequest] = Table()

_LONGEST_NAME = 128
_COMPATIBLE_NAME = 64
_LONGEST_NAMESPACE = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_DOTTED_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_PATTERN = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."

TOOL_TYPES = frozenset(
    {
        *("function", "custom", "namespace", "mcp", "tool_search", "programmatic_tool_calling"),
        *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
        *("file_search", "code_interpreter", "image_generation", "computer", "computer_use_preview"),
        *("shell", "local_shell", "apply_patch"),
    }
)


# OAI-RESP-18
@table.rule("OAI-RESP-18")
def namespaces_present(request: ResponsesRequest) -> Iterator[Finding]:
    """A function_call of a tool that is declared only in a namespace has that namespace."""
    default: set[str] = set()
    namespaced: set[str] = set()
    deferred: set[str] = set()
    for tools, loaded in ((request.tools, True), (request.found, False)):
        for tool in tools:
            namespaced.update(text_of(member.data.get("name")) for member in tool.members())
            if tool.type in ("function", "custom"):
                is_loaded = loaded and tool.data.get("defer_loading") is not True
                (default if is_loaded else deferred).add(text_of(tool.data.get("name")))
    for item in request.of("function_call"):
        name = item.data.get("name")
        if not is_text(name) or name in default or is_text(item.data.get("namespace")):
            continue
        if name in namespaced or name in deferred:
            # A tool found by search has a namespace of its own name; whether also before the search is unknown.
            severity: Severity = "reject" if name in namespaced else "risk"
            seen = f"Missing namespace for function_call {quoted(name)}. It does not exist in the default namespace."
            yield Finding(f"{item.path}.namespace", seen, severity)


# OAI-RESP-19
@table.rule("OAI-RESP-19")
def names_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """Names are 1 to 128 letters, digits, `_` or `-`, namespaces up to 64; some servers limit names to 64 too."""
    for item in request.of("function_call", "custom_tool_call"):
        name = item.data.get("name")
        if isinstance(name, str):
            yield from _name(f"{item.path}.name", name, request.model, custom=item.type == "custom_tool_call")
    for item in request.of("function_call_output"):
        name = item.data.get("name")
        if name is not None and (not isinstance(name, str) or len(name) > _LONGEST_NAME):
            yield Finding(f"{item.path}.name", f"the name is {quoted(name)}; at most {_LONGEST_NAME} characters")
    for item in request.of("function_call", "custom_tool_call", "function_call_output"):
        if item.data.get("namespace") is not None:
            yield from _namespace(f"{item.path}.namespace", item.data["namespace"])


def _name(path: str, name: str, model: Model, *, custom: bool) -> Iterator[Finding]:
    if not name:
        yield Finding(path, f"the name is empty; 1 to {_LONGEST_NAME} characters are expected")
    elif not _NAME.fullmatch(name):
        allows_dots = model.family == "gpt" and (model.line == "o" or model.at_least(5))
        is_risk = custom or (allows_dots and _DOTTED_NAME.fullmatch(name))
        seen = f"Invalid '{path}': string does not match pattern. {_PATTERN}"
        yield Finding(path, f"{seen} The name is {quoted(name)}.", "risk" if is_risk else "reject")
    elif len(name) > _COMPATIBLE_NAME:
        severity: Severity = "reject" if len(name) > _LONGEST_NAME else "risk"
        seen = f"the name {quoted(name)} has {len(name)} characters"
        yield Finding(path, f"{seen}; {_LONGEST_NAME} are allowed, on some servers {_COMPATIBLE_NAME}", severity)


def _namespace(path: str, value: object) -> Iterator[Finding]:
    if not is_text(value):
        yield Finding(path, f"the namespace is {kind(value)}; a name is expected")
    elif not _NAME.fullmatch(value):
        yield Finding(path, f"Invalid '{path}': string does not match pattern. {_PATTERN}")
    elif len(value) > _LONGEST_NAMESPACE:
        seen = f"the namespace {quoted(value)} has {len(value)} characters"
        yield Finding(path, f"{seen}; at most {_LONGEST_NAMESPACE} are allowed")


# OAI-RESP-19
@table.rule("OAI-RESP-19")
def tools_valid(request: ResponsesRequest) -> Iterator[Finding]:
    """A tool has a type; function and custom tools have their name at the top level."""
    declared = request.body.get("tools")
    if "tools" in request.body and not is_list(declared):
        severity: Severity = "risk" if declared is None else "reject"
        yield Finding("tools", f"tools is {kind(declared)}; a list is expected", severity)
    for tool in (*request.tools, *request.found):
        yield from _tool(tool, request.model)
        for member in tool.members():
            yield from _tool(member, request.model)
    choice = request.body.get("tool_choice")
    if is_object(choice) and choice.get("type") in ("function", "custom") and not is_text(choice.get("name")):
        yield Finding("tool_choice.name", "Missing required parameter: 'tool_choice.name'.")


def _tool(tool: Tool, model: Model) -> Iterator[Finding]:
    if not tool.type:
        yield Finding(tool.path, "the tool has no type; an object with a type is expected")
    elif tool.type not in TOOL_TYPES:
        yield Finding(f"{tool.path}.type", f"Invalid value: {quoted(tool.type)} is not a known tool type.", "risk")
    if tool.type in ("function", "custom", "namespace"):
        name = tool.data.get("name")
        if not isinstance(name, str):
            yield Finding(f"{tool.path}.name", f"Missing required parameter: '{tool.path}.name'.")
        elif tool.type == "namespace":
            yield from _namespace(f"{tool.path}.name", name)
        else:
            yield from _name(f"{tool.path}.name", name, model, custom=tool.type == "custom")
    if tool.type == "namespace" and not is_list(tool.data.get("tools")):
        yield Finding(f"{tool.path}.tools", f"Missing required parameter: '{tool.path}.tools'.")
    parameters = tool.data.get("parameters")
    if tool.type == "function" and parameters is not None and not is_object(parameters):
        yield Finding(f"{tool.path}.parameters", f"parameters is {kind(parameters)}; a JSON schema is expected")
    if tool.type == "mcp" and not is_text(tool.data.get("server_label")):
        yield Finding(f"{tool.path}.server_label", f"Missing required parameter: '{tool.path}.server_label'.")

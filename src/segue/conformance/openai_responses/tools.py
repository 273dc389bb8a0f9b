"""Tools, their names and namespaces: OAI-RESP-18 and 19."""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.openai_responses.request import ResponsesRequest, Tool
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, text_or_empty, type_name
from segue.models import Model

table: RuleTable[ResponsesRequest] = RuleTable()

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


@table.rule("OAI-RESP-18")
def namespaces_present(request: ResponsesRequest) -> Iterator[Problem]:
    """A function_call of a tool that is declared only in a namespace has that namespace."""
    default: set[str] = set()
    namespaced: set[str] = set()
    deferred: set[str] = set()
    for tools, loaded in ((request.tools, True), (request.searched_tools, False)):
        for tool in tools:
            namespaced.update(text_or_empty(member.data.get("name")) for member in tool.namespace_tools())
            if tool.type in ("function", "custom"):
                is_loaded = loaded and tool.data.get("defer_loading") is not True
                (default if is_loaded else deferred).add(text_or_empty(tool.data.get("name")))
    for item in request.items_of("function_call"):
        name = item.data.get("name")
        if not has_text(name) or name in default or has_text(item.data.get("namespace")):
            continue
        if name in namespaced or name in deferred:
            # A tool found by search has a namespace of its own name; whether also before the search is unknown.
            severity: Severity = "reject" if name in namespaced else "risk"
            seen = f"Missing namespace for function_call {quote(name)}. It does not exist in the default namespace."
            yield Problem(f"{item.path}.namespace", seen, severity)


@table.rule("OAI-RESP-19")
def names_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """Names are 1 to 128 letters, digits, `_` or `-`, namespaces up to 64; some servers limit names to 64 too."""
    for item in request.items_of("function_call", "custom_tool_call"):
        name = item.data.get("name")
        if isinstance(name, str):
            yield from _check_name(f"{item.path}.name", name, request.model, custom=item.type == "custom_tool_call")
    for item in request.items_of("function_call_output"):
        name = item.data.get("name")
        if name is not None and (not isinstance(name, str) or len(name) > _LONGEST_NAME):
            yield Problem(f"{item.path}.name", f"the name is {quote(name)}; at most {_LONGEST_NAME} characters")
    for item in request.items_of("function_call", "custom_tool_call", "function_call_output"):
        if item.data.get("namespace") is not None:
            yield from _check_namespace(f"{item.path}.namespace", item.data["namespace"])


def _check_name(path: str, name: str, model: Model, *, custom: bool) -> Iterator[Problem]:
    if not name:
        yield Problem(path, f"the name is empty; 1 to {_LONGEST_NAME} characters are expected")
    elif not _NAME.fullmatch(name):
        allows_dots = model.family == "gpt" and (model.line == "o" or model.at_least(5))
        is_risk = custom or (allows_dots and _DOTTED_NAME.fullmatch(name))
        seen = f"Invalid '{path}': string does not match pattern. {_PATTERN}"
        yield Problem(path, f"{seen} The name is {quote(name)}.", "risk" if is_risk else "reject")
    elif len(name) > _COMPATIBLE_NAME:
        severity: Severity = "reject" if len(name) > _LONGEST_NAME else "risk"
        seen = f"the name {quote(name)} has {len(name)} characters"
        yield Problem(path, f"{seen}; {_LONGEST_NAME} are allowed, on some servers {_COMPATIBLE_NAME}", severity)


def _check_namespace(path: str, value: object) -> Iterator[Problem]:
    if not has_text(value):
        yield Problem(path, f"the namespace is {type_name(value)}; a name is expected")
    elif not _NAME.fullmatch(value):
        yield Problem(path, f"Invalid '{path}': string does not match pattern. {_PATTERN}")
    elif len(value) > _LONGEST_NAMESPACE:
        seen = f"the namespace {quote(value)} has {len(value)} characters"
        yield Problem(path, f"{seen}; at most {_LONGEST_NAMESPACE} are allowed")


@table.rule("OAI-RESP-19")
def tools_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """A tool has a type; function and custom tools have their name at the top level."""
    declared = request.body.get("tools")
    if "tools" in request.body and not is_list(declared):
        severity: Severity = "risk" if declared is None else "reject"
        yield Problem("tools", f"tools is {type_name(declared)}; a list is expected", severity)
    for tool in (*request.tools, *request.searched_tools):
        yield from _check_tool(tool, request.model)
        for member in tool.namespace_tools():
            yield from _check_tool(member, request.model)
    choice = request.body.get("tool_choice")
    if is_object(choice) and choice.get("type") in ("function", "custom") and not has_text(choice.get("name")):
        yield Problem("tool_choice.name", "Missing required parameter: 'tool_choice.name'.")


def _check_tool(tool: Tool, model: Model) -> Iterator[Problem]:
    if not tool.type:
        yield Problem(tool.path, "the tool has no type; an object with a type is expected")
    elif tool.type not in TOOL_TYPES:
        yield Problem(f"{tool.path}.type", f"Invalid value: {quote(tool.type)} is not a known tool type.", "risk")
    if tool.type in ("function", "custom", "namespace"):
        name = tool.data.get("name")
        if not isinstance(name, str):
            yield Problem(f"{tool.path}.name", f"Missing required parameter: '{tool.path}.name'.")
        elif tool.type == "namespace":
            yield from _check_namespace(f"{tool.path}.name", name)
        else:
            yield from _check_name(f"{tool.path}.name", name, model, custom=tool.type == "custom")
    if tool.type == "namespace" and not is_list(tool.data.get("tools")):
        yield Problem(f"{tool.path}.tools", f"Missing required parameter: '{tool.path}.tools'.")
    parameters = tool.data.get("parameters")
    if tool.type == "function" and parameters is not None and not is_object(parameters):
        yield Problem(f"{tool.path}.parameters", f"parameters is {type_name(parameters)}; a JSON schema is expected")
    if tool.type == "mcp" and not has_text(tool.data.get("server_label")):
        yield Problem(f"{tool.path}.server_label", f"Missing required parameter: '{tool.path}.server_label'.")

"""Parses tool calls from Python code: calls with keyword or positional arguments, also printed or assigned.

The code is parsed, never run. Positional arguments get the names of the declared parameters, in their order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, cast

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import FoundCall

_MAX_CODE = 1 << 20


class _NotACallError(ValueError):
    """Code that is more than calls with literal arguments."""


def parse_python_calls(code: str, declared: DeclaredTools) -> list[FoundCall] | str:
    """Parse code that consists of calls; return the reason if it does not."""
    if len(code) > _MAX_CODE:
        return "the code is too long"
    try:
        tree = ast.parse(code)
        calls = [call for statement in tree.body for call in _parse_statement(statement, declared)]
    except _NotACallError as error:
        return str(error)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "not a call in Python"
    return calls or "no call"


def _parse_statement(statement: ast.stmt, declared: DeclaredTools) -> Iterator[FoundCall]:
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    if isinstance(value, ast.Call) and _format_name(value.func) == "print":
        # A printed variable is the result of a call before it.
        if len(value.args) != 1 or value.keywords:
            raise _NotACallError("not a call of a tool")
        value = value.args[0]
        if isinstance(value, ast.Name):
            return
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    for item in items:
        if not isinstance(item, ast.Call):
            raise _NotACallError("code that is not a call")
        yield _parse_call(item, declared)


def _parse_call(call: ast.Call, declared: DeclaredTools) -> FoundCall:
    name = _format_name(call.func)
    if not name:
        raise _NotACallError("no tool name")
    tool = strip_module(name, declared)
    parameters = declared.parameter_names(tool)
    if len(call.args) > len(parameters):
        raise _NotACallError("positional arguments without declared parameters")
    arguments: dict[str, Any] = dict(zip(parameters, map(_parse_literal, call.args), strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise _NotACallError("not an argument with a name")
        arguments[keyword.arg] = _parse_literal(keyword.value)
    return FoundCall(tool, arguments)


def _format_name(node: ast.expr) -> str:
    """Return a dotted name; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _parse_literal(node: ast.expr) -> Any:
    """Return the value of a literal as JSON; tuples and sets become lists, and JSON's constants are accepted."""
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id="true" | "false" | "null" as name):
            return {"true": True, "false": False, "null": None}[name]
        case ast.List() | ast.Tuple() | ast.Set():
            return [_parse_literal(item) for item in node.elts]
        case ast.Dict():
            keys = [None if key is None else _parse_literal(key) for key in node.keys]
            if not all(isinstance(key, str) for key in keys):
                raise _NotACallError("a key that is not a string")
            return dict(zip(cast("list[str]", keys), map(_parse_literal, node.values), strict=True))
        case _:
            raise _NotACallError("an argument that is not a literal")


def strip_module(name: str, declared: DeclaredTools) -> str:
    """Return a name without its module."""
    last = name.rpartition(".")[2]
    is_tool_name = declared.can_call(name) if declared.is_given else not name.startswith("default_api.")
    return name if is_tool_name or (declared.is_given and not declared.can_call(last)) else last

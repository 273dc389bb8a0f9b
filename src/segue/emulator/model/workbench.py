"""A workbench: the file and shell tools of a coding agent, recognised by their names and parameters.

Users of such tools do not name them («what does this project do?»), so calls are made from the intents in their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from segue.canonical.request import Tool
from segue.emulator.model.arguments import is_valid, make_arguments
from segue.emulator.model.candidates import tokenize
from segue.emulator.model.intents import find_intents
from segue.emulator.model.last_exchange import Exchange, format_result, is_failure
from segue.emulator.model.lookup_intents import find_well_known_file, is_about_project
from segue.emulator.model.tool_match import match_tools
from segue.emulator.model.user_request import Intent, ToolRole
from segue.emulator.steps import CallStep

__all__ = ["Workbench", "find_workbench"]

# Of each role: one of these sets of words is in the tool's name, and these are its parameters, by what they may be
# called. A tool is of a role where it has all parameters but those that end in «?».
_ROLES: tuple[tuple[ToolRole, str, str], ...] = (
    ("todo", "todo", "items=items,todos"),
    (
        "edit",
        "edit|replace",
        "path=path,file_path old=old_string,old,old_text,old_str new=new_string,new,new_text,new_str",
    ),
    ("write", "write|create file|save file", "path=path,file_path,filename content=content,text,contents"),
    ("read", "read|cat|view file|open file", "path=path,file_path,filename,file"),
    ("list", "list|ls|dir", "path?=path,folder,directory,dir"),
    ("glob", "glob|find file", "pattern=pattern,glob path?=path,folder"),
    ("grep", "grep|search file|search code", "pattern=pattern,query,regex path?=path,folder literal?=literal"),
    ("shell", "shell|bash|exec|terminal|run command", "command=command,cmd"),
    ("fetch", "fetch", "url=url,uri"),
    ("task", "task|agent", "prompt=prompt description?=description model?=model"),
)
_LISTED_NAME = re.compile(r"^\W*(?:\d+\s+)?(?P<name>[\w.-]+)")
_WRONG_KIND: Mapping[ToolRole, re.Pattern[str]] = {
    "list": re.compile(r"\bnot a (?:folder|directory)\b", re.IGNORECASE),
    "read": re.compile(r"\bis a (?:folder|directory)\b", re.IGNORECASE),
}
_SUFFIXES = ("", ".md", ".rst", ".txt")


class _RoleTool(Struct, frozen=True):
    """A tool in its role: which parameter gets what."""

    tool: Tool
    parameters: Mapping[str, str]


class Workbench(Struct, frozen=True):
    tools_by_role: Mapping[ToolRole, _RoleTool]
    other_tools: tuple[Tool, ...]

    def has_tool(self, name: str) -> bool:
        return self.role_of(name) is not None

    def is_changing(self, name: str) -> bool:
        return self.role_of(name) in ("write", "edit", "shell", "todo", "task")

    def make_calls(self, text: str) -> tuple[list[CallStep], list[Tool]]:
        """The calls that the words ask for; or the tools, where they ask for some that are not of the bench."""
        beside = [place.tool for place in self.tools_by_role.values()]
        others = match_tools(self.other_tools, text, other_tools=beside, by_name=True)
        if others:
            return [], others
        made: list[CallStep] = []
        for errand in find_intents(text):
            call = self._make_call(errand)
            if call is not None and call not in made:
                made.append(call)
        return made, [] if made else match_tools(self.other_tools, text, other_tools=beside, by_name=False)

    def follow_up(self, exchange: Exchange) -> list[CallStep]:
        """After a look at a folder: the file that tells what it is about, where one is there. A folder that was taken
        for a file is listed, and the other way round."""
        if len(exchange.calls) != 1:
            return []
        (before,) = exchange.calls
        result = exchange.result(before)
        role = self.role_of(before.name)
        if result is None or role not in ("list", "read"):
            return []
        path = self._arguments_by_use(before.name, before.arguments).get("path")
        if is_failure(result):
            other: ToolRole = "read" if role == "list" else "list"
            mistaken = isinstance(path, str) and _WRONG_KIND[role].search(format_result(result))
            made = self._make_call(Intent(other, {"path": path})) if mistaken else None
            return [] if made is None else [made]
        found = self.find_named_file(exchange.text, format_result(result)) if role == "list" else None
        if found is None:
            return []
        inside = isinstance(path, str) and path.strip("./") != ""
        call = self._make_call(Intent("read", {"path": f"{str(path).rstrip('/')}/{found}" if inside else found}))
        return [] if call is None else [call]

    def find_named_file(self, text: str, listing: str) -> str | None:
        """The file in a listing that the words are about."""
        stem = find_well_known_file(text) or ("readme" if is_about_project(text) else None)
        return None if stem is None else _find_file(stem, listing.splitlines())

    def role_of(self, name: str) -> ToolRole | None:
        return next((role for role, place in self.tools_by_role.items() if place.tool.name == name), None)

    def _arguments_by_use(self, name: str, arguments: object) -> dict[str, Any]:
        """A call's arguments by what they are for."""
        role = self.role_of(name)
        if role is None or not isinstance(arguments, dict):
            return {}
        given = cast("dict[str, Any]", arguments)
        return {key: given[name] for key, name in self.tools_by_role[role].parameters.items() if name in given}

    def _make_call(self, errand: Intent) -> CallStep | None:
        """None where there is no tool for it, or none that takes it so."""
        place = self.tools_by_role.get(errand.role)
        if place is None:
            return None
        schema = place.tool.parameters or {}
        made: object = make_arguments(schema, "")
        required: object = schema.get("required")
        needed = cast("list[object]", required) if isinstance(required, list) else []
        values = {place.parameters[key]: value for key, value in errand.values.items() if key in place.parameters}
        kept = cast("dict[str, Any]", made) if isinstance(made, dict) else {}
        arguments = {**{key: value for key, value in kept.items() if key in needed}, **values}
        return CallStep(place.tool.name, arguments) if is_valid(schema, arguments) else None


def find_workbench(tools: Sequence[Tool]) -> Workbench | None:
    """The bench among these tools; None where they are no such thing: one reads files, another looks for them."""
    places: dict[ToolRole, _RoleTool] = {}
    others: list[Tool] = []
    for tool in tools:
        role, place = _match_role(tool)
        if role is None or place is None or role in places:
            others.append(tool)
        else:
            places[role] = place
    if "read" not in places or not {"list", "glob", "grep", "shell"} & places.keys():
        return None
    return Workbench(places, tuple(others))


def _match_role(tool: Tool) -> tuple[ToolRole | None, _RoleTool | None]:
    properties: object = (tool.parameters or {}).get("properties")
    if tool.kind != "function" or not isinstance(properties, dict):
        return None, None
    known = cast("dict[str, object]", properties)
    name = set(tokenize(tool.name))
    for role, names, parameters in _ROLES:
        if not any(name.issuperset(words.split()) for words in names.split("|")):
            continue
        found = _match_parameters(parameters, known)
        if found is not None:
            return role, _RoleTool(tool, found)
    return None, None


def _match_parameters(wanted: str, known: Mapping[str, object]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for part in wanted.split():
        key, _, names = part.partition("=")
        name = next((name for name in names.split(",") if name in known), None)
        if name is not None:
            found[key.rstrip("?")] = name
        elif not key.endswith("?"):
            return None
    return found


def _find_file(stem: str, lines: Iterable[str]) -> str | None:
    """The file of this name among the lines of a listing, the plainest ending first."""
    names = [match["name"] for line in lines if (match := _LISTED_NAME.match(line)) and not line.rstrip().endswith("/")]
    fitting = [name for name in names if name.lower().partition(".")[0] == stem]
    order = {f"{stem}{suffix}": place for place, suffix in enumerate(_SUFFIXES)}
    return min(fitting, key=lambda name: (order.get(name.lower(), len(order)), name), default=None)

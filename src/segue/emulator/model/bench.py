"""A workbench: the file and shell tools of a coding agent, recognised by their names and parameters.

Users of such tools do not name them («what does this project do?»), so calls are made from the intents in their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from segue.canonical.request import Tool
from segue.emulator.model.arguments import arguments_for, fits
from segue.emulator.model.asks import Errand, Role
from segue.emulator.model.choosing import asked_tools
from segue.emulator.model.errands import errands_in
from segue.emulator.model.lookups import asks_about_all, wanted_file
from segue.emulator.model.offers import tokens
from segue.emulator.model.recent import Exchange, failed, result_text
from segue.emulator.turns import Call

__all__ = ["Bench", "bench_of"]

# Of each role: one of these sets of words is in the tool's name, and these are its parameters, by what they may be
# called. A tool is of a role where it has all parameters but those that end in «?».
_ROLES: tuple[tuple[Role, str, str], ...] = (
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
_NAMED = re.compile(r"^\W*(?:\d+\s+)?(?P<name>[\w.-]+)")
_MISTAKEN: Mapping[Role, re.Pattern[str]] = {
    "list": re.compile(r"\bnot a (?:folder|directory)\b", re.IGNORECASE),
    "read": re.compile(r"\bis a (?:folder|directory)\b", re.IGNORECASE),
}
_SUFFIXES = ("", ".md", ".rst", ".txt")


class _Place(Struct, frozen=True):
    """A tool in its role: which parameter gets what."""

    tool: Tool
    parameters: Mapping[str, str]


class Bench(Struct, frozen=True):
    places: Mapping[Role, _Place]
    others: tuple[Tool, ...]

    def has(self, name: str) -> bool:
        return self.role_of(name) is not None

    def changes(self, name: str) -> bool:
        return self.role_of(name) in ("write", "edit", "shell", "todo", "task")

    def calls(self, words: str) -> tuple[list[Call], list[Tool]]:
        """The calls that the words ask for; or the tools, where they ask for some that are not of the bench."""
        beside = [place.tool for place in self.places.values()]
        others = asked_tools(self.others, words, beside=beside, by_name=True)
        if others:
            return [], others
        made: list[Call] = []
        for errand in errands_in(words):
            call = self._call(errand)
            if call is not None and call not in made:
                made.append(call)
        return made, [] if made else asked_tools(self.others, words, beside=beside, by_name=False)

    def follow_up(self, exchange: Exchange) -> list[Call]:
        """After a look at a folder: the file that tells what it is about, where one is there. A folder that was taken
        for a file is listed, and the other way round."""
        if len(exchange.calls) != 1:
            return []
        (before,) = exchange.calls
        result = exchange.result(before)
        role = self.role_of(before.name)
        if result is None or role not in ("list", "read"):
            return []
        path = self._said(before.name, before.arguments).get("path")
        if failed(result):
            other: Role = "read" if role == "list" else "list"
            mistaken = isinstance(path, str) and _MISTAKEN[role].search(result_text(result))
            made = self._call(Errand(other, {"path": path})) if mistaken else None
            return [] if made is None else [made]
        found = self.file_wanted(exchange.words, result_text(result)) if role == "list" else None
        if found is None:
            return []
        inside = isinstance(path, str) and path.strip("./") != ""
        call = self._call(Errand("read", {"path": f"{str(path).rstrip('/')}/{found}" if inside else found}))
        return [] if call is None else [call]

    def file_wanted(self, words: str, listing: str) -> str | None:
        """The file in a listing that the words are about."""
        stem = wanted_file(words) or ("readme" if asks_about_all(words) else None)
        return None if stem is None else _file_like(stem, listing.splitlines())

    def role_of(self, name: str) -> Role | None:
        return next((role for role, place in self.places.items() if place.tool.name == name), None)

    def _said(self, name: str, arguments: object) -> dict[str, Any]:
        """A call's arguments by what they are for."""
        role = self.role_of(name)
        if role is None or not isinstance(arguments, dict):
            return {}
        given = cast("dict[str, Any]", arguments)
        return {key: given[name] for key, name in self.places[role].parameters.items() if name in given}

    def _call(self, errand: Errand) -> Call | None:
        """None where there is no tool for it, or none that takes it so."""
        place = self.places.get(errand.role)
        if place is None:
            return None
        schema = place.tool.parameters or {}
        made: object = arguments_for(schema, "")
        required: object = schema.get("required")
        needed = cast("list[object]", required) if isinstance(required, list) else []
        values = {place.parameters[key]: value for key, value in errand.values.items() if key in place.parameters}
        kept = cast("dict[str, Any]", made) if isinstance(made, dict) else {}
        arguments = {**{key: value for key, value in kept.items() if key in needed}, **values}
        return Call(place.tool.name, arguments) if fits(schema, arguments) else None


def bench_of(tools: Sequence[Tool]) -> Bench | None:
    """The bench among these tools; None where they are no such thing: one reads files, another looks for them."""
    places: dict[Role, _Place] = {}
    others: list[Tool] = []
    for tool in tools:
        role, place = _placed(tool)
        if role is None or place is None or role in places:
            others.append(tool)
        else:
            places[role] = place
    if "read" not in places or not {"list", "glob", "grep", "shell"} & places.keys():
        return None
    return Bench(places, tuple(others))


def _placed(tool: Tool) -> tuple[Role | None, _Place | None]:
    properties: object = (tool.parameters or {}).get("properties")
    if tool.kind != "function" or not isinstance(properties, dict):
        return None, None
    known = cast("dict[str, object]", properties)
    name = set(tokens(tool.name))
    for role, names, parameters in _ROLES:
        if not any(name.issuperset(words.split()) for words in names.split("|")):
            continue
        found = _parameters(parameters, known)
        if found is not None:
            return role, _Place(tool, found)
    return None, None


def _parameters(wanted: str, known: Mapping[str, object]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for part in wanted.split():
        key, _, names = part.partition("=")
        name = next((name for name in names.split(",") if name in known), None)
        if name is not None:
            found[key.rstrip("?")] = name
        elif not key.endswith("?"):
            return None
    return found


def _file_like(stem: str, lines: Iterable[str]) -> str | None:
    """The file of this name among the lines of a listing, the plainest ending first."""
    names = [match["name"] for line in lines if (match := _NAMED.match(line)) and not line.rstrip().endswith("/")]
    fitting = [name for name in names if name.lower().partition(".")[0] == stem]
    order = {f"{stem}{suffix}": place for place, suffix in enumerate(_SUFFIXES)}
    return min(fitting, key=lambda name: (order.get(name.lower(), len(order)), name), default=None)

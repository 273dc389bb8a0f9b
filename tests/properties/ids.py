"""Id styles: the form of the ids of a scenario. A scenario must not need distinctions that its style lacks.

`Style.unique`: no two calls of the scenario share an id; `Style.distinct`: no two of one turn do;
`Style.has_ids`: every call has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.properties.scenario import ABSENT, OWN

LONG = "x" * 95


@dataclass(frozen=True)
class Style:
    name: str
    unique: bool = True
    distinct: bool = True
    has_ids: bool = True

    def id(self, turn: int, index: int, total: int, tool: str) -> Any:
        """The raw id of a call: in which turn, at which place in it, how many calls before it."""
        return _MAKERS[self.name](turn, index, total, tool)

    def result_id(self, call_id: Any, marker: str) -> Any:
        """The id of this call's result: the same, or one that a client invented where there was none."""
        return f"made_up_{marker}" if self.name == "minted" else call_id


_SANITISED = (".", ":", "/", " ", "|", "é", "_")


def _near(turn: int, index: int, total: int, tool: str) -> str:
    """Differs from its neighbours in one character that sanitising would remove or replace."""
    return f"a{_SANITISED[total % len(_SANITISED)]}b{total // len(_SANITISED) or ''}"


def _reused(turn: int, index: int, total: int, tool: str) -> str:
    """Ids that are reused between turns."""
    return f"call_{'abcde'[(turn + index) % 5]}"


_MAKERS = {
    "own": lambda turn, index, total, tool: OWN,
    "unique": lambda turn, index, total, tool: f"call_{total:03}x{turn}",
    "toolu": lambda turn, index, total, tool: f"toolu_01{total:03}",
    "restarting": lambda turn, index, total, tool: f"call_{index}",
    "constant": lambda turn, index, total, tool: "call_0",
    "empty": lambda turn, index, total, tool: "",
    "null": lambda turn, index, total, tool: None,
    "null text": lambda turn, index, total, tool: "null",
    "absent": lambda turn, index, total, tool: ABSENT,
    "kimi": lambda turn, index, total, tool: f"functions.{tool}:{total}",
    "kimi short": lambda turn, index, total, tool: f"{tool}:{total}",
    "kimi restarting": lambda turn, index, total, tool: f"functions.{tool}:{index}",
    "long": lambda turn, index, total, tool: f"{LONG}{total:05}",
    "long head": lambda turn, index, total, tool: f"{total:05}{LONG}",
    "near": _near,
    "canonical": lambda turn, index, total, tool: f"hist_tool_{'abcdefghij'[total % 10]}{total}",
    "canonical reused": lambda turn, index, total, tool: f"hist_tool_{index}",
    "canonical broken": lambda turn, index, total, tool: f"hist_tool_f.{total}:x",
    "reused": _reused,
    "numbers": lambda turn, index, total, tool: str(total),
    "mixed": lambda turn, index, total, tool: f"call_m{total}" if index % 2 else "",
    "minted": lambda turn, index, total, tool: "",
    "prefixes": lambda turn, index, total, tool: f"{('', 'call_', 'toolu_', 'call_call_')[total % 4]}p{total // 4}",
}

UNIQUE = tuple(
    Style(name)
    for name in (
        *("own", "unique", "toolu", "kimi", "kimi short", "long", "long head", "near", "canonical"),
        *("canonical broken", "numbers", "prefixes"),
    )
)
REPEATING = tuple(Style(name, unique=False) for name in ("restarting", "kimi restarting", "canonical reused", "reused"))
CONSTANT = (Style("constant", unique=False, distinct=False),)
MISSING = tuple(
    Style(name, unique=False, distinct=False, has_ids=False)
    for name in ("empty", "null", "null text", "absent", "mixed", "minted")
)
STYLES = (*UNIQUE, *REPEATING, *CONSTANT, *MISSING)

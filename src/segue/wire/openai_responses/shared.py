"""What every module of this wire knows: its name, which item ids go back, two-part tool names, and one rendering."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from segue.canonical.blocks import Native, ToolCall
from segue.canonical.ids import raw_id_or_none, short_hash
from segue.wire.base import Projection
from segue.wire.fields import JsonObject

__all__ = ["API", "JOINT", "PROVIDER", "Reading", "Spelling", "joined_name", "lawful_id", "made_id", "split_name"]

API = "openai-responses"
PROVIDER = "openai"

# ------------------------------------------------------------------------------------------------------------ item ids

_FORM = re.compile(r"[A-Za-z0-9_-]{1,64}")
# OAI-RESP-02, OAI-RESP-03
_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_MADE = "hist"


def lawful_id(kind: str, item_id: object) -> bool:
    """Whether the API takes an item back under this id. One that segue made up for a client is unknown there."""
    if not isinstance(item_id, str) or not _FORM.fullmatch(item_id):
        return False
    return item_id.startswith(_PREFIXES.get(kind, "")) and item_id.split("_")[1:2] != [_MADE]


def made_id(prefix: str, *said: str) -> str:
    """An id for a client that wants one: the same for the same words, and told from the provider's own."""
    return f"{prefix}_{_MADE}_{short_hash('|'.join(said))}"


# --------------------------------------------------------------------------------------------------------------- names

JOINT = "::"


def joined_name(namespace: str, name: str) -> str:
    """The one name of a tool in a namespace. The joint is lawful in neither part, so it can be taken apart again."""
    return f"{namespace}{JOINT}{name}"


def split_name(name: str) -> tuple[str | None, str]:
    """Namespace, if any, and name."""
    namespace, joint, bare = name.partition(JOINT)
    return (namespace, bare) if joint else (None, name)


# ------------------------------------------------------------------------------------------------------ in, and out


class Reading(Struct):
    """What the items of one body are read with.

    `names` leads from a bare name to the joined one where only one namespace has such a tool; `hosted` are the calls
    that the provider runs although their output is an item of its own; `answered`: every call has an output that names
    it, so that one which names none answers nothing; `referred`: outputs may lie with the provider, named by an item;
    `continues`: so may what comes before all items;
    `crowded`: ids that more than one output names;
    `shells` leads from an item's own id to the id of its call, for outputs of the local shell.
    """

    model: str | None = None
    stored: bool = True
    names: dict[str, str] = {}
    hosted: frozenset[str] = frozenset()
    answered: bool = False
    referred: bool = False
    continues: bool = False
    shells: dict[str, str] = {}
    crowded: frozenset[str] = frozenset()
    seen: set[str] = set()
    asked: set[str] = set()
    searches: int = 0
    calls: set[tuple[str, str]] = set()

    def takes_id(self, kind: str, item: JsonObject) -> bool:
        """Whether an item may go back under the id it has, if it has one. OAI-RESP-13: each id once."""
        item_id = item.get("id")
        # The one id of an output of the local shell is that of its call.
        if item_id is None or kind == "local_shell_call_output":
            return True
        if not lawful_id(kind, item_id) or item_id in self.seen:
            return False
        self.seen.add(item_id)
        return True

    def is_first(self, kind: str, item: JsonObject) -> bool:
        """Whether no item before this one is the call, or the output, of this id (OAI-RESP-25)."""
        call_id = raw_id_or_none(item.get("call_id"))
        if call_id is None:
            return True
        name = ("output" if kind.endswith("_output") else "call", call_id)
        known = name in self.calls
        self.calls.add(name)
        return not known


class Spelling:
    """One rendering: the target's ids and names, the calls by id, and the item ids that are taken."""

    __slots__ = ("calls", "fetch", "ids", "own_type", "report", "spell", "used")

    def __init__(self, projection: Projection, calls: Iterable[ToolCall] = ()) -> None:
        self.ids = projection.ids
        self.spell = projection.names.render
        self.report = projection.report
        self.fetch = projection.fetch
        self.calls = {call.id: call for call in calls}
        self.own_type: frozenset[str] = frozenset()
        self.used: set[str] = set()

    @staticmethod
    def home(native: Native | None) -> Native | None:
        """The native fragment if it is this very API's."""
        return native if native is not None and native.api == API else None

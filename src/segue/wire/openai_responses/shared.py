"""What every module of this wire knows: who speaks it, which item ids go back, two-part names, and one rendering."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from segue.canonical.blocks import Native, ToolCall
from segue.canonical.ids import raw_id_or_none, short_hash
from segue.canonical.jsontext import parse_argument_text
from segue.render.report import Report
from segue.wire.base import Projection
from segue.wire.fields import JsonObject
from segue.wire.openai import APIS
from segue.wire.openai_responses.shapes import is_openai_item, is_shaped

__all__ = [
    "JOINT",
    "OPENAI",
    "Reading",
    "ResponsesDialect",
    "Spelling",
    "joined_name",
    "made_id",
    "parse_arguments",
    "split_name",
]

# ------------------------------------------------------------------------------------------------------------ item ids

_MADE = "hist"


def _form(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"(?=.{{1,64}}\Z)(?![^_]*_{_MADE}(?:_|\Z)){prefix}[A-Za-z0-9_-]*")


# OAI-RESP-02, OAI-RESP-03
_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_FORMS = {kind: _form(prefix) for kind, prefix in _PREFIXES.items()}
_ANY_FORM = _form("")


def _lawful_id(kind: str, item_id: object) -> bool:
    """Whether the API takes an item back under this id. One that segue made up for a client is unknown there."""
    return isinstance(item_id, str) and _FORMS.get(kind, _ANY_FORM).fullmatch(item_id) is not None


def made_id(prefix: str, *said: str) -> str:
    """An id for a client that wants one: the same for the same words, and told from the provider's own.

    Without dashes, which the service was seen to refuse.
    """
    return f"{prefix}_{_MADE}_{short_hash('|'.join(said)).replace('-', '_')}"


# --------------------------------------------------------------------------------------------------------------- names

JOINT = "::"


def joined_name(namespace: str, name: str) -> str:
    """The one name of a tool in a namespace. The joint is lawful in neither part, so it can be taken apart again."""
    return f"{namespace}{JOINT}{name}"


def split_name(name: str) -> tuple[str | None, str]:
    """Namespace, if any, and name."""
    namespace, joint, bare = name.partition(JOINT)
    return (namespace, bare) if joint else (None, name)


def parse_arguments(value: object) -> tuple[Any, str | None]:
    """Arguments that are to be JSON in a string: the value, and the exact text where that was not valid JSON."""
    return parse_argument_text(value) if isinstance(value, str) else ({} if value is None else value, None)


# ------------------------------------------------------------------------------------------------------------ dialects


class ResponsesDialect(Struct, frozen=True):
    """One vendor on this wire. `name` is the API that its items are at home at."""

    name: str
    provider: str
    lawful_id: Callable[[str, object], bool] = _lawful_id
    """Whether an item of this type may go back under this id."""
    takes: Callable[[str, JsonObject], bool] = is_openai_item
    """Whether an item of a type with a row of its own, or of none, may go back as it is."""
    takes_part: Callable[[JsonObject], bool] | None = None
    """Whether a content part may go back as it is, where the list of their types is closed."""
    files: frozenset[str] = APIS
    """The APIs that hold the same files."""
    kindred: bool = False
    """Whether this is OpenAI itself, with the options that its other API has too."""
    response_prefix: str = "resp"
    goes_on: Callable[[str], bool] = bool
    """Whether this can name a response that the provider holds."""
    hold_tool: Callable[[JsonObject], None] | None = None
    """Raises, with the place, where a tool that the vendor runs is declared otherwise than it takes it."""
    mend_item: Callable[[JsonObject, str, Report], JsonObject] | None = None
    """An item and its type as this vendor wants it: itself where nothing is amiss."""
    mend_body: Callable[[JsonObject, Report], JsonObject] | None = None
    """The same for a body that goes home."""


OPENAI = ResponsesDialect("openai-responses", "openai", kindred=True)


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
    dialect: ResponsesDialect = OPENAI

    def takes_id(self, kind: str, item: JsonObject) -> bool:
        """Whether an item may go back under the id it has, if it has one. OAI-RESP-13: each id once."""
        item_id = item.get("id")
        # The one id of an output of the local shell is that of its call.
        if item_id is None or kind == "local_shell_call_output":
            return True
        if not isinstance(item_id, str) or not self.dialect.lawful_id(kind, item_id) or item_id in self.seen:
            return False
        self.seen.add(item_id)
        return True

    def native(self, fragment: JsonObject, intact: bool = True) -> Native:
        return Native(self.dialect.name, fragment, intact)

    def is_whole(self, kind: str, item: JsonObject) -> bool:
        """Whether an item has all that its type demands, and is of a type that goes back."""
        return is_shaped(kind, item) and self.dialect.takes(kind, item)

    def knows_call(self, item: JsonObject) -> bool:
        """Whether the call that an output names came before it, or may have (OAI-RESP-05): calls stand elsewhere."""
        call_id = raw_id_or_none(item.get("call_id"))
        elsewhere = self.continues or not (self.calls or self.searches)
        return call_id is None or elsewhere or ("call", call_id) in self.calls

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

    __slots__ = ("calls", "dialect", "fetch", "ids", "own_type", "report", "spell", "used")

    def __init__(self, dialect: ResponsesDialect, projection: Projection, calls: Iterable[ToolCall] = ()) -> None:
        self.dialect = dialect
        self.ids = projection.ids
        self.spell = projection.names.render
        self.report = projection.report
        self.fetch = projection.fetch
        self.calls = {call.id: call for call in calls}
        self.own_type: frozenset[str] = frozenset()
        self.used: set[str] = set()

    def home(self, native: Native | None) -> Native | None:
        """The native fragment if it is this very API's."""
        return native if native is not None and native.api == self.dialect.name else None

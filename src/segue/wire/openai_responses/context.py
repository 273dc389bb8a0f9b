"""Dialects, valid item ids, and the parse and render contexts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from msgspec import Struct

from segue.canonical.blocks import Native, ToolCall
from segue.canonical.ids import raw_id_or_none, short_hash
from segue.canonical.json import parse_argument_text
from segue.render.report import Report
from segue.wire.base import RenderContext, WireContext
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.mixed_body import BodyApi
from segue.wire.openai_responses.required_fields import has_required_fields, is_openai_item
from segue.wire.openai_shared import OPENAI_APIS

# ------------------------------------------------------------------------------------------------------------ item ids

_DERIVED_MARK = "hist"


def _id_pattern(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"(?=.{{1,64}}\Z)(?![^_]*_{_DERIVED_MARK}(?:_|\Z)){prefix}[A-Za-z0-9_-]*")


# OAI-RESP-02, OAI-RESP-03
_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_ID_PATTERNS = {kind: _id_pattern(prefix) for kind, prefix in _PREFIXES.items()}
_ANY_ID_PATTERN = _id_pattern("")


def _is_valid_id(kind: str, item_id: object) -> bool:
    """Return whether the API accepts an item with this id. It rejects ids that segue derived for clients."""
    return isinstance(item_id, str) and _ID_PATTERNS.get(kind, _ANY_ID_PATTERN).fullmatch(item_id) is not None


def is_any_id(_kind: str, item_id: object) -> bool:
    """Return whether this may be an id of a service whose ids have no prefixes. Derived ids are never sent."""
    return isinstance(item_id, str) and _ANY_ID_PATTERN.fullmatch(item_id) is not None


def derive_id(prefix: str, *seed: str) -> str:
    """Return a deterministic item id for a client, with a mark by which segue recognises it later.

    Without dashes, which the service has been observed to reject.
    """
    return f"{prefix}_{_DERIVED_MARK}_{short_hash('|'.join(seed)).replace('-', '_')}"


# ----------------------------------------------------------------------------------------------------------- arguments


def parse_arguments(value: object) -> tuple[Any, str | None]:
    """Return the value of JSON in a string, and the exact text if it is not valid JSON."""
    return parse_argument_text(value) if isinstance(value, str) else ({} if value is None else value, None)


# ------------------------------------------------------------------------------------------------------------ dialects


def has_whole_arguments(call: ToolCall, kind: object) -> bool:
    """Return whether a call has all its arguments, even if its item, of this type, is marked as incomplete."""
    return kind == "function_call" and bool(object_or_none(call.arguments))


class ResponsesDialect(Struct, frozen=True, dict=True):
    """One vendor on this wire. `name` is the API name of its items."""

    name: str
    provider: str
    is_valid_id: Callable[[str, object], bool] = _is_valid_id
    """Whether an item of this type may be sent with this id."""
    accepts_item: Callable[[str, JsonObject], bool] = is_openai_item
    """Whether an item of a typed, hosted or unknown type may be sent as it is."""
    accepts_part: Callable[[JsonObject], bool] | None = None
    """Whether a content part may be sent as it is, where the API has a closed list of part types."""
    file_apis: frozenset[str] = OPENAI_APIS
    """The APIs that share the same uploaded files."""
    summaries: bool = False
    """Whether the summary of reasoning is an option."""
    vendor_options: bool = False
    """Whether this is OpenAI itself, with the options that both of its APIs share."""
    response_prefix: str = "resp"
    derive_id: Callable[..., str] = derive_id
    """Returns a deterministic id for a client, made from a prefix and texts; the service does not accept it."""
    is_response_id: Callable[[str], bool] = bool
    """Whether this is a valid id of a stored response."""
    validate_tool: Callable[[JsonObject], None] | None = None
    """Raises `InputError` with the path if a hosted tool is not declared as the vendor requires."""
    repair_item: Callable[[JsonObject, str, Report], JsonObject] | None = None
    """Repairs an item of this type for the vendor; returns the same object if it is valid."""
    repair_body: Callable[[JsonObject, Report], JsonObject] | None = None
    """The same for a same-API body."""

    @cached_property
    def body_api(self) -> BodyApi:
        """This API, for tool items of other APIs in a body of it."""
        return BodyApi(self.name, "openai-responses", self.provider)


OPENAI = ResponsesDialect("openai-responses", "openai", summaries=True, vendor_options=True)


# ---------------------------------------------------------------------------------------------------------- contexts


class ParseContext(Struct, kw_only=True):
    """State while the items of one body are parsed: properties of the whole body, and of the items parsed so far."""

    dialect: ResponsesDialect = OPENAI
    model: str | None = None

    # The state that the provider stores.
    stored: bool = True
    """Whether the provider may have stored earlier items."""
    continues: bool = False
    """Whether stored items precede the body."""
    has_references: bool = False
    """Whether the body has item references, which may stand for stored outputs."""

    # All calls and outputs of the body.
    joined_names: dict[str, str] = {}
    """Bare name to namespaced name, if no tool outside namespaces has the bare name."""
    hosted_call_ids: frozenset[str] = frozenset()
    """Ids of calls that the provider runs although their output is an item of its own."""
    answered_ids: frozenset[str | None] = frozenset()
    """Ids of calls that have an output."""
    shell_call_ids: dict[str, str] = {}
    """Item id to call id of local shell calls: their outputs may have the item id."""
    repeated_output_ids: frozenset[str] = frozenset()
    """Call ids that several outputs have."""
    all_answered: bool = False
    """Whether every call has an output with its id, so that an output without an id belongs to no call."""

    # The items parsed so far.
    seen_item_ids: set[str] = set()
    """Valid item ids."""
    seen_call_ids: set[tuple[str, str]] = set()
    """`call` or `output`, with the call id of the item."""
    approval_ids: set[str] = set()
    """Ids of valid MCP approval requests."""
    open_searches: int = 0
    """Number of tool searches without an id that have no output yet."""

    def accepts_id(self, kind: str, item: JsonObject) -> bool:
        """Return whether the item id is absent, or valid and new. OAI-RESP-13: each id once."""
        item_id = item.get("id")
        # The only id of a local shell output is the id of its call.
        if item_id is None or kind == "local_shell_call_output":
            return True
        if not isinstance(item_id, str) or not self.dialect.is_valid_id(kind, item_id) or item_id in self.seen_item_ids:
            return False
        self.seen_item_ids.add(item_id)
        return True

    def native(self, fragment: JsonObject, intact: bool = True) -> Native:
        return Native(self.dialect.name, fragment, intact)

    def is_valid_item(self, kind: str, item: JsonObject) -> bool:
        """Return whether an item has the required fields of its type, and the API accepts that type."""
        return has_required_fields(kind, item) and self.dialect.accepts_item(kind, item)

    def has_call(self, item: JsonObject) -> bool:
        """Return whether the call of an output precedes it, or may be stored with the provider (OAI-RESP-05)."""
        call_id = raw_id_or_none(item.get("call_id"))
        may_be_stored = self.continues or not (self.seen_call_ids or self.open_searches)
        return call_id is None or may_be_stored or ("call", call_id) in self.seen_call_ids

    def is_first_use(self, kind: str, item: JsonObject) -> bool:
        """Return whether this is the first call, or the first output, with this call id (OAI-RESP-25)."""
        call_id = raw_id_or_none(item.get("call_id"))
        if call_id is None:
            return True
        key = ("output" if kind.endswith("_output") else "call", call_id)
        seen = key in self.seen_call_ids
        self.seen_call_ids.add(key)
        return not seen


class ResponsesContext(WireContext):
    """The render context: projected ids and names, the calls by id, and the item ids in use.

    `keeps_item_ids`: the items of this reply follow reasoning with an id, so each is sent with its own if it is known.
    """

    def __init__(
        self, dialect: ResponsesDialect, render_context: RenderContext, calls: Iterable[ToolCall] = ()
    ) -> None:
        super().__init__(render_context, dialect.name)
        self.dialect = dialect
        self.calls = {call.id: call for call in calls}
        self.typed_call_ids: frozenset[str] = frozenset()
        self.used_item_ids: set[str] = set()
        self.keeps_item_ids = False

    def known_item_id(self, kind: str, item_id: object) -> str | None:
        """Return the item's own id if the reply keeps ids and this one is valid for the type, and new."""
        if not self.keeps_item_ids or not isinstance(item_id, str) or item_id in self.used_item_ids:
            return None
        return item_id if self.dialect.is_valid_id(kind, item_id) else None

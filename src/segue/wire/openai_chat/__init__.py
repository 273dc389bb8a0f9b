"""The wire `openai-chat`: OpenAI Chat Completions, the base of dialects and server profiles.

A server profile is a server that implements `openai-chat` with rules of its own (COMP-*), as differences from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec

from segue.models import Model, cache_by_model, parse_model
from segue.render.constraints import Constraints
from segue.render.ranges import BodyRange
from segue.wire.base import BodyTool, Wire
from segue.wire.ids import IdScheme, prefix_scheme
from segue.wire.json_values import optional_object, optional_strings
from segue.wire.names import NameRule
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.errors import ERROR_FORMS
from segue.wire.openai_chat.reply import ID_PREFIX, parse_reply, render_reply
from segue.wire.openai_chat.request import body_keys, item_keys, parse_request, render_items, render_request
from segue.wire.openai_shared import (
    OPENAI_APIS,
    OPENAI_RANGES,
    TOOL_KEYS,
    TOP_LOGPROBS,
    VENDOR_OPTIONS,
    fit_options_to_model,
    is_gpt,
    is_reasoning_model,
    parse_error,
)
from segue.wire.schema.rules import OPENAI, OPENAI_STRICT
from segue.wire.stream_openers import renderer_opener, stream_opener

Row = Mapping[str, Any]
_NO_CHANGES: Row = {}


def make_wire(
    dialect: ChatDialect,
    *,
    title: str,
    id_scheme: Callable[[Model], IdScheme],
    name_rule: Callable[[Model], NameRule] = lambda _model: NameRule(),
    tool_format: str = "openai",
    base_path: str = "/v1",
    **row: Any,
) -> Wire:
    """Build the wire of a dialect. `row` has other fields of `Wire` that the functions of this wire do not read."""
    return Wire(
        name=dialect.name,
        kind=dialect.kind,
        provider=dialect.provider,
        title=title,
        default_model=dialect.default_model,
        tool_format=tool_format,
        path="/chat/completions",
        constraints=dialect.constraints,
        id_scheme=id_scheme,
        name_rule=name_rule,
        parse_request=partial(parse_request, dialect=dialect),
        render_request=partial(render_request, dialect=dialect),
        render_items=partial(render_items, dialect=dialect),
        parse_reply=partial(parse_reply, dialect=dialect),
        render_reply=partial(render_reply, dialect=dialect),
        open_stream=stream_opener("segue.wire.openai_chat.stream_in:ChatReader", dialect),
        stream_renderer=renderer_opener("segue.wire.openai_chat.stream_out:ChatRenderer", dialect),
        parse_error=parse_error,
        render_error=dialect.render_error,
        error_forms=ERROR_FORMS,
        body_keys=body_keys(dialect),
        item_keys=item_keys(dialect),
        tool_keys=TOOL_KEYS,
        invalid_json_arguments=dialect.invalid_json_arguments,
        make_reply_id=lambda key: ID_PREFIX + key,
        custom_tools=dialect.custom_tools,
        message_names=True,
        refusals=dialect.refusals,
        vendor_options=VENDOR_OPTIONS if dialect.vendor_options else {},
        on="openai-chat" if dialect.kind == "dialect" else None,
        stream_fields=dialect.stream_fields,
        default_values={"n": 1},
        base_path=base_path,
        **row,
    )


# OAI-CHAT-01, OAI-CHAT-02: any characters, at most 40 of them.
OPENAI_IDS = prefix_scheme("openai", "call_", limit=40, pattern=r"[\s\S]{1,40}")
_MEDIA_KINDS = frozenset({"image", "audio", "document"})


def _refused_media(model: Model) -> frozenset[str]:
    """Only models with audio in their name hear it; of a server, models of other makers may."""
    return frozenset({"audio"}) if model.family == "gpt" and "audio" not in model.name else frozenset()


_SYSTEM_REFUSED = re.compile(r"o1-(?:mini|preview)\b")


@cache_by_model
def _constraints(model: Model) -> Constraints:
    allows_system = _SYSTEM_REFUSED.match(model.name) is None
    return Constraints(
        "openai-chat",
        "openai",
        unpaired_without_id=True,
        # OAI-CHAT-06
        id_pattern=OPENAI_IDS.pattern,
        # OAI-CHAT-15
        later_system="developer" if allows_system else "text",
        later_system_same_api=allows_system,
        allows_system=allows_system,
        # OAI-CHAT-17
        reasoning_replay="none",
        reasoning_excludes_tools=is_gpt(model) and model.at_least(5, 2),
        reasoning_by_default=is_gpt(model) and model.at_least(5, 6),
        # «'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'»
        json_word="anywhere",
        # OAI-CHAT-23
        option_ranges=OPENAI_RANGES,
        body_ranges=(
            BodyRange(("n",), 1, 128),
            BodyRange(("max_tokens",), 1),
            BodyRange(("max_completion_tokens",), 1),
            TOP_LOGPROBS,
        ),
        # OAI-CHAT-13
        has_error_flag=False,
        # OAI-CHAT-11: an empty string is content, null and an empty list are not.
        empty_message_speakers=frozenset({"human", "ai", "system"}),
        # OAI-CHAT-11
        media_in_user=_MEDIA_KINDS - _refused_media(model),
        refused_media=_refused_media(model),
        file_id_kinds=frozenset({"document"}),
        file_id_apis=OPENAI_APIS,
        # OAI-CHAT-12
        text_only_results=True,
    )


def _fields_by_model(model: Model) -> Row:
    # COMP-09
    return {"arguments": "json"} if model.family == "minimax" else _NO_CHANGES


def _openai_fields_by_model(model: Model) -> Row:
    # OAI-CHAT-23
    searches = model.family != "gpt" or "search" in model.name
    return _fields_by_model(model) if searches else {"refused_keys": {"body": frozenset({"web_search_options"})}}


OPENAI_DIALECT = ChatDialect(
    name="openai-chat",
    provider="openai",
    default_model="gpt-4.1",
    constraints=_constraints,
    kind="wire",
    developer_role=True,
    custom_tools=True,
    vendor_options=True,
    option_types={
        "audio": optional_object,
        "logit_bias": optional_object,
        "modalities": optional_strings,
        "prediction": optional_object,
        "web_search_options": optional_object,
    },
    legacy_calls=True,
    refusals=True,
    # OAI-CHAT-10: not documented for other servers.
    invalid_json_arguments=True,
    by_model=_openai_fields_by_model,
    media=_MEDIA_KINDS,
    max_tokens_key="max_completion_tokens",
    description_limit=1024,
    schema_rules=OPENAI,
    strict_schema_rules=OPENAI_STRICT,
    adjust_options=fit_options_to_model,
)


def _names(model: Model) -> NameRule:
    return NameRule(same_api_allowed="." if is_reasoning_model(model) else "")


_TITLE = "OpenAI Chat Completions"
_ROW: Row = {
    "families": ("gpt",),
    "served_families": frozenset({"gpt"}),
    "serves_any_model": True,
    "body_tool": BodyTool("web_search_options"),
}
WIRE = make_wire(OPENAI_DIALECT, title=_TITLE, id_scheme=lambda _model: OPENAI_IDS, name_rule=_names, **_ROW)


# ------------------------------------------------------------------------------------------------------ server profiles

# Common to all servers: features that only OpenAI has are disabled.
_SERVER_DIALECT: Row = {
    "default_model": "",
    "developer_role": False,
    "custom_tools": False,
    "vendor_options": False,
    "option_types": {},
    "legacy_calls": False,
    "refusals": False,
    "invalid_json_arguments": False,
    "media": frozenset({"image"}),
    "max_tokens_key": "max_tokens",
    "description_limit": None,
    "strict_schema_rules": None,
}
_SERVER_CONSTRAINTS: Row = {
    "unpaired_without_id": False,
    "later_system": "text",
    "later_system_same_api": True,
    "allows_system": True,
    "reasoning_excludes_tools": False,
    "reasoning_by_default": False,
    "option_ranges": {},
    "body_ranges": (),
    "file_id_kinds": frozenset[str](),
    "media_in_user": frozenset({"image"}),
}


def make_server_wire(
    name: str,
    dialect: Row = _NO_CHANGES,
    constraints: Row = _NO_CHANGES,
    *,
    by_model: Callable[[Model], Row] = lambda _model: _NO_CHANGES,
    dialect_by_model: Callable[[Model], Row] = _fields_by_model,
    ids: Callable[[Model], IdScheme] = WIRE.id_scheme,
    served_model: str | None = None,
) -> Wire:
    """Build the wire of a server profile. The rules of `served_model` apply to models whose name has no known family.

    `dialect` and `constraints` hold the fields of `ChatDialect` and `Constraints` that differ; `by_model` returns the
    constraints that depend on the model, `dialect_by_model` such fields of the dialect.
    """

    def served(model: Model) -> Model:
        return model if model.family or served_model is None else parse_model(served_model)

    @cache_by_model
    def constraints_of(model: Model) -> Constraints:
        model = served(model)
        id_pattern = {"id_pattern": ids(model).pattern}
        row = {**_SERVER_CONSTRAINTS, **constraints, **by_model(model), **id_pattern}
        return msgspec.structs.replace(OPENAI_DIALECT.constraints(model), **row)

    def ids_of(model: Model) -> IdScheme:
        return ids(served(model))

    def fields_of(model: Model) -> Row:
        return dialect_by_model(served(model))

    @lru_cache(maxsize=64)
    def serving(model: str) -> Wire:
        return make_server_wire(
            name,
            dialect,
            constraints,
            by_model=by_model,
            dialect_by_model=dialect_by_model,
            ids=ids,
            served_model=model,
        )

    fixed: Row = {"kind": "server", "constraints": constraints_of, "by_model": fields_of}
    served_dialect = msgspec.structs.replace(OPENAI_DIALECT, **{**_SERVER_DIALECT, **dialect, **fixed})
    row: dict[str, Any] = {**_ROW, "profile": name, "served_model": served_model, "serving": serving}
    return make_wire(served_dialect, title=_TITLE, id_scheme=ids_of, name_rule=_names, **row)

"""The wire `openai-chat`: OpenAI Chat Completions, the base of all Chat-compatible dialects."""

from __future__ import annotations

from functools import partial

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai import APIS, KINDRED, TOOL_KEYS, fit_to_model, is_gpt, parse_error, reasons
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.plain import chat_lane
from segue.wire.openai_chat.reply import parse_reply, render_reply
from segue.wire.openai_chat.request import body_keys, item_keys, parse_request, render_request
from segue.wire.openai_chat.stream import ChatReader, ChatRenderer
from segue.wire.schema.rules import OPENAI, OPENAI_STRICT
from segue.wire.stream import StreamParser

__all__ = ["OPENAI_CHAT", "OPENAI_DIALECT", "ChatDialect", "make_wire"]


def make_wire(dialect: ChatDialect) -> Wire:
    """Build the wire of a dialect."""
    return Wire(
        name=dialect.name,
        kind=dialect.kind,
        provider=dialect.provider,
        title=dialect.title,
        default_model=dialect.default_model,
        tool_format=dialect.tool_format,
        demands=dialect.demands,
        ids=dialect.ids,
        names=dialect.names,
        parse_request=partial(parse_request, dialect=dialect),
        render_request=partial(render_request, dialect=dialect),
        parse_reply=partial(parse_reply, dialect=dialect),
        render_reply=partial(render_reply, dialect=dialect),
        open_stream=lambda turn_key: StreamParser(ChatReader(turn_key, dialect)),
        stream_renderer=lambda render_context, model, request: ChatRenderer(render_context, dialect, model, request),
        parse_error=parse_error,
        render_error=dialect.render_error,
        body_keys=body_keys(dialect),
        item_keys=item_keys(dialect),
        tool_keys=TOOL_KEYS,
        custom_tools=dialect.custom_tools,
        kindred=KINDRED if dialect.kindred_options else {},
        on=None if dialect.kind == "wire" else "openai-chat",
        lane=chat_lane(dialect),
    )


# OAI-CHAT-01, OAI-CHAT-02: any characters, at most 40 of them.
_IDS = prefix_scheme("openai", "call_", limit=40, lawful=r"[\s\S]{1,40}")
_MEDIA = frozenset({"image", "audio", "document"})


def _ids(_model: Model) -> IdScheme:
    return _IDS


def _demands(model: Model) -> Demands:
    return Demands(
        "openai-chat",
        "openai",
        loose_without_id=True,
        # OAI-CHAT-06
        unique_ids="turn",
        own_id=_IDS.lawful,
        # OAI-CHAT-15
        later_system="developer",
        # OAI-CHAT-17
        reasoning="none",
        reasoning_refuses_tools=is_gpt(model) and model.at_least(5, 6),
        # «'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'»
        json_word="anywhere",
        # OAI-CHAT-13
        error_flag=False,
        # OAI-CHAT-11: an empty string is content, null and an empty list are not.
        empty_messages=frozenset({"human", "ai", "system"}),
        media_human=_MEDIA,
        file_ids=frozenset({"document"}),
        file_ids_of=APIS,
        # OAI-CHAT-12
        text_results=True,
    )


def _names(model: Model) -> NameRule:
    # OAI-CHAT-08: reasoning models have been observed to accept a dot.
    return NameRule(home_allowed="." if reasons(model) else "")


OPENAI_DIALECT = ChatDialect(
    name="openai-chat",
    provider="openai",
    title="OpenAI Chat Completions",
    default_model="gpt-4.1",
    demands=_demands,
    ids=_ids,
    kind="wire",
    names=_names,
    developer=True,
    custom_tools=True,
    kindred_options=True,
    old_calls=True,
    refusals=True,
    # OAI-CHAT-10: not documented for other servers.
    broken_arguments=True,
    media=_MEDIA,
    limit_key="max_completion_tokens",
    description_limit=1024,
    schemas=OPENAI,
    strict_schemas=OPENAI_STRICT,
    adjust=fit_to_model,
)
OPENAI_CHAT = make_wire(OPENAI_DIALECT)

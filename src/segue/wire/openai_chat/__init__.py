"""The wire `openai-chat`: OpenAI Chat Completions, and what every vendor that speaks it is a dialect of."""

from __future__ import annotations

from functools import partial

import msgspec

from segue.canonical.request import Options
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai_chat.dialect import ChatDialect, left_out
from segue.wire.openai_chat.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.openai_chat.request import BODY_KEYS, ITEM_KEYS, parse_request, render_request
from segue.wire.schema.rules import OPENAI, OPENAI_STRICT

__all__ = ["OPENAI_CHAT", "ChatDialect", "make_wire"]


def make_wire(dialect: ChatDialect) -> Wire:
    """The wire as this vendor speaks it."""
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
        parse_error=parse_error,
        render_error=render_error,
        body_keys=BODY_KEYS,
        item_keys=ITEM_KEYS,
        custom_tools=dialect.custom_tools,
        on=None if dialect.kind == "wire" else "openai-chat",
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
        reasoning_refuses_tools=_is_gpt(model) and model.at_least(5, 6),
        # OAI-CHAT-13
        error_flag=False,
        # OAI-CHAT-11: an empty string is content, null and an empty list are not.
        empty_messages=frozenset({"human", "ai", "system"}),
        media_human=_MEDIA,
        # OAI-CHAT-12
        text_results=True,
    )


def _names(model: Model) -> NameRule:
    # OAI-CHAT-08: reasoning models were seen to take a dot.
    return NameRule(home_allowed="." if _reasons(model) else "")


def _is_gpt(model: Model) -> bool:
    return model.family == "gpt" and model.line != "o"


def _reasons(model: Model) -> bool:
    return model.family == "gpt" and (model.line == "o" or model.at_least(5))


def _adjusted(options: Options, model: Model, report: Report) -> Options:
    """What OpenAI's models refuse, by generation."""
    if _reasons(model):
        sampling = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "stop")
        options = left_out(options, report, "reasoning models refuse it", *sampling)
    asked = options.reasoning
    if asked is None or model.family != "gpt" or not model.version:
        return options
    if asked.enabled is False or asked.effort == "none":
        # Older models have no word for it: those that do not reason need none, the others always do.
        nameable = _is_gpt(model) and model.at_least(5, 1)
        return options if nameable else msgspec.structs.replace(options, reasoning=None)
    return options if _reasons(model) else left_out(options, report, "this model does not reason", "reasoning")


_OPENAI = ChatDialect(
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
    old_calls=True,
    refusals=True,
    media=_MEDIA,
    limit_key="max_completion_tokens",
    description_limit=1024,
    schemas=OPENAI,
    strict_schemas=OPENAI_STRICT,
    adjust=_adjusted,
)
OPENAI_CHAT = make_wire(_OPENAI)

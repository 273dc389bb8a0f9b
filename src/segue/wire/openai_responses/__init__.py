"""The wire `openai-responses`: OpenAI's Responses API, the base of its dialects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import ApiError, Wire
from segue.wire.fields import JsonObject
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai import APIS, TOOL_KEYS, parse_error, reasons, render_error
from segue.wire.openai_responses.options import KINDRED_KEYS
from segue.wire.openai_responses.plain import responses_lane
from segue.wire.openai_responses.reply import parse_reply, render_reply
from segue.wire.openai_responses.request import BODY_KEYS, ITEM_KEYS, parse_request, render_request
from segue.wire.openai_responses.shared import JOINT, OPENAI, ResponsesDialect
from segue.wire.openai_responses.stream import ResponsesReader, ResponsesRenderer
from segue.wire.stream import StreamParser

__all__ = ["OPENAI_RESPONSES", "demands", "make_wire"]

# OAI-RESP-01
_IDS = prefix_scheme("openai", "call_", limit=64, lawful=r"[\s\S]{1,64}")
_SHOWN = frozenset({"image", "document"})


def demands(model: Model) -> Demands:
    """The constraints of a model. An unknown model is treated as a reasoning model."""
    return Demands(
        OPENAI.name,
        OPENAI.provider,
        # OAI-RESP-06
        adjacent=False,
        # OAI-RESP-25: outputs are paired with calls by id, at any position.
        unique_ids="conversation",
        own_id=_IDS.lawful,
        # OAI-RESP-24
        system="top",
        later_system="developer",
        # OAI-RESP-11, OAI-RESP-12: other models of the same provider have been observed to reject it.
        reasoning="signed",
        reasoning_bound="model",
        reasons=reasons(model) or model.family != "gpt" or not model.version,
        # OAI-RESP-07 to OAI-RESP-09
        reasoning_leads=True,
        # The error text names input messages; instructions are not known to be enough.
        json_word="messages",
        error_flag=False,
        empty_messages=frozenset({"human", "ai", "system"}),
        # OAI-RESP-15
        media_human=_SHOWN,
        # OAI-RESP-16
        media_results=_SHOWN,
        file_ids=_SHOWN,
        file_ids_of=APIS,
    )


def _ids(_model: Model) -> IdScheme:
    return _IDS


def _names(model: Model) -> NameRule:
    # OAI-RESP-19: newer specifications say 128. OAI-CHAT-08: reasoning models have been observed to accept a dot.
    return NameRule(home_allowed="." if reasons(model) else "", home_limit=128, home_joint=JOINT, home_free=True)


def make_wire(
    dialect: ResponsesDialect,
    title: str,
    default_model: str,
    demands: Callable[[Model], Demands],
    *,
    kind: Literal["wire", "dialect"] = "dialect",
    render_error: Callable[[ApiError], JsonObject] = render_error,
) -> Wire:
    """Build the wire of a dialect."""
    return Wire(
        name=dialect.name,
        kind=kind,
        provider=dialect.provider,
        title=title,
        default_model=default_model,
        tool_format="openai",
        demands=demands,
        ids=_ids,
        names=_names,
        parse_request=partial(parse_request, dialect=dialect),
        render_request=partial(render_request, dialect=dialect),
        parse_reply=partial(parse_reply, dialect=dialect),
        render_reply=partial(render_reply, dialect=dialect),
        open_stream=lambda turn_key: StreamParser(ResponsesReader(turn_key, dialect)),
        stream_renderer=lambda render_context, model, request: ResponsesRenderer(
            render_context, dialect, model, request
        ),
        parse_error=parse_error,
        render_error=render_error,
        # A dialect may not accept an id of another provider's response.
        body_keys=BODY_KEYS if kind == "wire" else BODY_KEYS - {"previous_response_id"},
        item_keys=ITEM_KEYS,
        tool_keys=TOOL_KEYS,
        custom_tools=True,
        kindred=KINDRED_KEYS if dialect.kindred else {},
        # `store` defaults to true, so `false` carries meaning.
        telling=frozenset({"store"}),
        on=None if kind == "wire" else OPENAI.name,
        lane=responses_lane(dialect),
    )


# The newest model in the rulebook; Chat rejects reasoning together with tools for it and refers here (OAI-CHAT-17).
OPENAI_RESPONSES = make_wire(OPENAI, "OpenAI Responses", "gpt-5.6-terra", demands, kind="wire")

"""The wire `openai-responses`: OpenAI's Responses API."""

from __future__ import annotations

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.openai import APIS, TOOL_KEYS, parse_error, reasons, render_error
from segue.wire.openai_responses.options import KINDRED_KEYS
from segue.wire.openai_responses.plain import RESPONSES_LANE
from segue.wire.openai_responses.reply import parse_reply, render_reply
from segue.wire.openai_responses.request import BODY_KEYS, ITEM_KEYS, parse_request, render_request
from segue.wire.openai_responses.shared import API, JOINT, PROVIDER

__all__ = ["OPENAI_RESPONSES", "demands"]

# OAI-RESP-01
_IDS = prefix_scheme("openai", "call_", limit=64, lawful=r"[\s\S]{1,64}")
_SHOWN = frozenset({"image", "document"})


def demands(model: Model) -> Demands:
    """The row of a model. What can't be told from its name is taken for one that reasons."""
    return Demands(
        API,
        PROVIDER,
        # OAI-RESP-06
        adjacent=False,
        # OAI-RESP-25: outputs find their calls by id wherever they stand.
        unique_ids="conversation",
        own_id=_IDS.lawful,
        # OAI-RESP-24
        system="top",
        later_system="developer",
        # OAI-RESP-11, OAI-RESP-12: another model of the same provider was seen to refuse it, too.
        reasoning="signed",
        reasoning_bound="model",
        reasons=reasons(model) or model.family != "gpt" or not model.version,
        # OAI-RESP-07 to OAI-RESP-09
        reasoning_leads=True,
        # The error speaks of input messages; that instructions would do, nobody has said.
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
    # OAI-RESP-19: newer specifications say 128. OAI-CHAT-08: reasoning models were seen to take a dot.
    return NameRule(home_allowed="." if reasons(model) else "", home_limit=128, home_joint=JOINT, home_free=True)


OPENAI_RESPONSES = Wire(
    name=API,
    kind="wire",
    provider=PROVIDER,
    title="OpenAI Responses",
    # The newest that the rulebook knows; Chat refuses to let it reason beside functions and points here (OAI-CHAT-17).
    default_model="gpt-5.6-terra",
    tool_format="openai",
    demands=demands,
    ids=_ids,
    names=_names,
    parse_request=parse_request,
    render_request=render_request,
    parse_reply=parse_reply,
    render_reply=render_reply,
    parse_error=parse_error,
    render_error=render_error,
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    tool_keys=TOOL_KEYS,
    custom_tools=True,
    kindred=KINDRED_KEYS,
    # What is not said is stored.
    telling=frozenset({"store"}),
    lane=RESPONSES_LANE,
)

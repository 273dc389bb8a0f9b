"""The Anthropic Messages API."""

from __future__ import annotations

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.anthropic.items import API, ITEM_KEYS
from segue.wire.anthropic.plain import ANTHROPIC_LANE
from segue.wire.anthropic.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.anthropic.request import BODY_KEYS, parse_request, render_request
from segue.wire.anthropic.stream import AnthropicReader, AnthropicRenderer
from segue.wire.anthropic.tools import TOOL_KEYS
from segue.wire.anthropic.traits import DEFAULT_MODEL, traits_of
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.stream import StreamParser

__all__ = ["ANTHROPIC", "demands"]

# ANT-01: no other characters; the API documents no length limit
_LAWFUL_ID = r"[a-zA-Z0-9_-]+"
_IDS = prefix_scheme(API, "toolu_", limit=64, lawful=_LAWFUL_ID)
_SHOWN = frozenset({"image", "document"})


def demands(model: Model) -> Demands:
    """The constraints of a model; an unknown version counts as the newest."""
    claude = model.family == "claude" and bool(model.version)
    capabilities = traits_of(model)
    return Demands(
        api=API,
        provider=API,
        # ANT-04, ANT-05: all results in the next message, at its head
        results="joint",
        # ANT-03
        unique_ids="conversation",
        own_id=_LAWFUL_ID,
        own_name=r"[a-zA-Z0-9_-]{1,128}",
        # ANT-21
        alternation="merged",
        first="human" if claude and not model.at_least(4) else "any",
        # ANT-22, ANT-23
        ending="prefill" if claude and not model.at_least(4, 6) else "human",
        prefill_while_reasoning=False,
        blank_ending=False,
        # ANT-20
        system="top",
        later_system="text",
        # ANT-26, ANT-28, ANT-29
        reasoning="signed",
        reasons=capabilities.budgets or capabilities.adaptive,
        reasoning_bound="prefix" if claude and model.at_least(5, 1) else "model",
        # ANT-24, ANT-27, ANT-30
        reasoning_opens_loop=True,
        reasoning_adapts=capabilities.adaptive,
        reasoning_at_end=False,
        reasoning_forbids_forced_choice=True,
        error_flag=True,
        # ANT-13 to ANT-16
        empty_text="refused",
        blank_messages=False,
        empty_messages=frozenset({"ai", "system"}),
        media_human=_SHOWN,
        # ANT-18
        media_results=_SHOWN,
        media_in_errors=False,
        # ANT-36
        tools_wanted="abroad",
    )


def _ids(_model: Model) -> IdScheme:
    return _IDS


def _names(_model: Model) -> NameRule:
    # ANT-34: newer error messages name 128
    return NameRule(home_limit=128)


ANTHROPIC = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Anthropic Messages",
    default_model=DEFAULT_MODEL,
    tool_format="anthropic",
    demands=demands,
    ids=_ids,
    names=_names,
    parse_request=parse_request,
    render_request=render_request,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=lambda turn_key: StreamParser(AnthropicReader(turn_key)),
    stream_renderer=lambda context, model, _request: AnthropicRenderer(context, model),
    parse_error=parse_error,
    render_error=render_error,
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    tool_keys=TOOL_KEYS,
    lane=ANTHROPIC_LANE,
)

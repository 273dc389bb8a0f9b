"""The Converse API of Amazon Bedrock: one API for models of many vendors, whose own rules also apply."""

from __future__ import annotations

from msgspec.structs import replace

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.anthropic import demands as claude_demands
from segue.wire.base import Wire
from segue.wire.bedrock.items import ITEM_KEYS
from segue.wire.bedrock.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.bedrock.request import BODY_KEYS, parse_request, render_request
from segue.wire.bedrock.stream import BedrockReader, BedrockRenderer
from segue.wire.bedrock.tools import TOOL_KEYS
from segue.wire.bedrock.traits import API, DEFAULT_MODEL, Traits, traits_of
from segue.wire.idmap import IdScheme, mistral_scheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.stream import StreamParser

__all__ = ["BEDROCK", "demands"]

# BED-01, and the rules of the model vendors, ANT-01 and MIS-01
_IDS = prefix_scheme(API, "tooluse_", limit=64, lawful=r"[a-zA-Z0-9_.:-]{1,64}")
_CLAUDE_IDS = prefix_scheme(API, "tooluse_", limit=64, lawful=r"[a-zA-Z0-9_-]{1,64}")
_SCHEMES: dict[str, IdScheme] = {"claude": _CLAUDE_IDS, "mistral": mistral_scheme()}
# BED-02
_LAWFUL_NAME = r"[a-zA-Z0-9_-]{1,64}"
# BED-07: media that Claude accepts in user messages, but not in one message with results
_APART = frozenset({"document", "video"})


def demands(model: Model) -> Demands:
    """The constraints of a model: the `anthropic` row for Claude, else the row of its family."""
    capabilities = traits_of(model)
    if model.family == "claude":
        return replace(_of_service(model, capabilities, claude_demands(model)), media_apart=_APART)
    return _of_service(
        model,
        capabilities,
        Demands(
            api=API,
            provider=API,
            # BED-07: text in the message of the results, or in a message of its own
            results="joint" if capabilities.words_beside_results else "alone",
            bridge=not capabilities.words_beside_results,
            # BED-04, BED-05
            unique_ids="turn",
            ending=capabilities.ending,
            system="top",
            later_system="text",
            # BED-11
            reasoning=capabilities.reasoning,
            reasoning_bound="model",
        ),
    )


def _of_service(model: Model, capabilities: Traits, row: Demands) -> Demands:
    """The row with the service's rules, which apply to every model."""
    return replace(
        row,
        api=API,
        provider=API,
        own_id=_ids(model).lawful,
        own_name=_LAWFUL_NAME,
        own_hosted=r"[\s\S]*" if capabilities.server_tools else r"(?!)",
        no_messages=False,
        # BED-10
        alternation="strict",
        # BED-06: a body without a model may be for any model
        first="human",
        first_at_home="named" if capabilities.assistant_first else "human",
        error_flag=capabilities.error_flag,
        own_errors=capabilities.error_flag,
        # BED-08
        empty_text="refused",
        blank_text=False,
        blank_messages=False,
        empty_messages=frozenset(),
        media_human=capabilities.shown,
        media_results=capabilities.in_results,
        # «you must also include a text field» in a message with a document
        media_with_words=frozenset({"document"}),
        # BED-03
        tools_wanted="always",
    )


def _ids(model: Model) -> IdScheme:
    return _SCHEMES.get(model.family, _IDS)


def _names(_model: Model) -> NameRule:
    return NameRule()


BEDROCK = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Amazon Bedrock Converse",
    default_model=DEFAULT_MODEL,
    tool_format="bedrock",
    demands=demands,
    ids=_ids,
    names=_names,
    parse_request=parse_request,
    render_request=render_request,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=lambda turn_key: StreamParser(BedrockReader(turn_key)),
    stream_renderer=lambda context, model, _request: BedrockRenderer(context, model),
    parse_error=parse_error,
    render_error=render_error,
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    tool_keys=TOOL_KEYS,
)

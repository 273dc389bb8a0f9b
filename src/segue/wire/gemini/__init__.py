"""The Gemini API: `generateContent`, v1 and v1beta."""

from __future__ import annotations

from segue.models import Model
from segue.render.demands import Demands
from segue.wire.base import Wire
from segue.wire.gemini.hosted import CODE_EXECUTION
from segue.wire.gemini.items import API, ITEM_KEYS
from segue.wire.gemini.media import BASE64
from segue.wire.gemini.plain import GEMINI_LANE, POSITION
from segue.wire.gemini.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.gemini.request import BODY_KEYS, parse_request, render_request
from segue.wire.gemini.stream import GeminiReader, GeminiRenderer
from segue.wire.gemini.tools import TOOL_KEYS
from segue.wire.gemini.traits import DEFAULT_MODEL, PLACEHOLDER, traits_of
from segue.wire.idmap import IdScheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.stream import StreamParser

__all__ = ["GEMINI", "demands"]

# GEM-11: any non-empty text is valid
_LAWFUL_ID = r"[\s\S]+"
_IDS = prefix_scheme(API, "call_", limit=64, lawful=_LAWFUL_ID)
# Models that pair by position get no ids; the report still lists these to tell calls apart.
_POSITIONS = prefix_scheme(POSITION, "call_", limit=64, lawful=_LAWFUL_ID)
_SEEN = frozenset({"image", "audio", "video", "document"})


def demands(model: Model) -> Demands:
    """The constraints of a model. An unknown model gets those of the newest one."""
    traits = traits_of(model)
    return Demands(
        api=API,
        provider=API,
        # GEM-01, GEM-03, GEM-04
        results="alone",
        by_position=True,
        # GEM-12: repeated or unequal ids confuse gateways, not the API
        unique_ids="never",
        own_id=_LAWFUL_ID,
        own_name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
        # GEM-08
        alternation="merged",
        # GEM-02, GEM-09
        first="human",
        first_calls=False,
        no_messages=False,
        # GEM-05, GEM-06
        ending="human",
        pauses=False,
        # GEM-24
        own_hosted=r"[\s\S]*" if traits.server_tools else CODE_EXECUTION,
        # GEM-28
        system="top",
        later_system="text",
        # GEM-18 to GEM-22: thoughts made by Gemini may be sent back, signed or not, each with its part
        reasoning="plain",
        reasons=bool(traits.levels) or traits.budget is not None,
        reasoning_whole=False,
        own_signature=BASE64,
        # GEM-15, GEM-17
        reasoning_on_calls="always" if traits.signed_calls else "never",
        placeholder_signature=PLACEHOLDER if traits.signed_calls else "",
        # GEM-14: the key `error` is the flag
        error_flag=True,
        # GEM-10
        empty_text="home",
        media_human=_SEEN,
        media_ai=frozenset({"image"}),
        # GEM-27
        media_results=frozenset({"image", "document"}) if traits.media_in_results else frozenset(),
        urls_in_results=False,
    )


def _ids(model: Model) -> IdScheme:
    return _IDS if traits_of(model).ids else _POSITIONS


def _names(_model: Model) -> NameRule:
    # GEM-23: newer documentation says 128
    return NameRule("a-zA-Z0-9_.:-", home_limit=128, first="a-zA-Z_", replayed=True)


GEMINI = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Google Gemini generateContent",
    default_model=DEFAULT_MODEL,
    tool_format="gemini",
    demands=demands,
    ids=_ids,
    names=_names,
    parse_request=parse_request,
    render_request=render_request,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=lambda turn_key: StreamParser(GeminiReader(turn_key)),
    stream_renderer=lambda render_context, model, _asked: GeminiRenderer(render_context, model),
    parse_error=parse_error,
    render_error=render_error,
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    tool_keys=TOOL_KEYS,
    lane=GEMINI_LANE,
)

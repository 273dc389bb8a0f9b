"""The Gemini API: `generateContent`, v1 and v1beta."""

from __future__ import annotations

from segue.models import Model, cache_by_model
from segue.render.constraints import PLACEHOLDER_SIGNATURE, Constraints
from segue.wire.base import Wire
from segue.wire.gemini.capabilities import API, DEFAULT_MODEL, capabilities_of
from segue.wire.gemini.errors import ERROR_FORMS
from segue.wire.gemini.items import CODE_EXECUTION, ITEM_KEYS
from segue.wire.gemini.media import BASE64_PATTERN
from segue.wire.gemini.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.gemini.request import BODY_KEYS, parse_request, render_items, render_request
from segue.wire.gemini.tools import TOOL_KEYS
from segue.wire.http_form import HttpForm
from segue.wire.ids import prefix_scheme
from segue.wire.names import NameRule
from segue.wire.stream_openers import renderer_opener, stream_opener

# GEM-11: any non-empty text is valid
_VALID_ID = r"[\s\S]+"
_IDS = prefix_scheme(API, "call_", limit=64, pattern=_VALID_ID)
# Models that pair by position get no ids; the report still lists these ids, to distinguish the calls.
_POSITIONAL_IDS = prefix_scheme("position", "call_", limit=64, pattern=_VALID_ID)
_MEDIA_KINDS = frozenset({"image", "audio", "video", "document"})


@cache_by_model
def constraints(model: Model) -> Constraints:
    """Return the constraints of a model. An unknown model gets those of the newest one."""
    capabilities = capabilities_of(model)
    return Constraints(
        api=API,
        provider=API,
        # GEM-01, GEM-03, GEM-04
        result_grouping="alone",
        pairs_by_position=True,
        # GEM-12: repeated or unequal ids confuse gateways, not the API
        id_pattern=_VALID_ID,
        name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
        # GEM-08
        alternation="merged",
        # GEM-02
        calls_in_one_message=not capabilities.split_calls,
        # GEM-02, GEM-09
        first_speaker="human",
        first_can_call=False,
        allows_no_messages=False,
        # GEM-05, GEM-06
        ending="human",
        allows_pause=False,
        # GEM-24
        hosted_pattern=r"[\s\S]*" if capabilities.server_tools else CODE_EXECUTION,
        # GEM-28
        system_position="top",
        later_system="text",
        # GEM-18 to GEM-22: thoughts made by Gemini may be sent back, signed or not, each with its part
        reasoning_replay="plain",
        can_reason=bool(capabilities.thinking_levels) or capabilities.thinking_budget is not None,
        signature_pattern=BASE64_PATTERN,
        # GEM-15, GEM-17
        reasoning_required_on_calls="always" if capabilities.signed_calls else "never",
        placeholder_signature=PLACEHOLDER_SIGNATURE if capabilities.signed_calls else "",
        # GEM-30
        option_ranges={"temperature": (0, 2), "top_p": (0, 1)},
        # GEM-14: the key `error` is the flag
        has_error_flag=True,
        # GEM-10
        empty_text="intact",
        media_in_user=_MEDIA_KINDS,
        media_in_assistant=frozenset({"image"}),
        # GEM-27
        media_in_results=frozenset({"image", "document"}) if capabilities.media_in_results else frozenset(),
        allows_urls_in_results=False,
        response_format_with_tools=capabilities.json_with_tools,
    )


def _names(_model: Model) -> NameRule:
    # GEM-23: 128 in newer documentation
    return NameRule("a-zA-Z0-9_.:-", same_api_limit=128, first_allowed="a-zA-Z_", same_api_keep_undeclared=True)


WIRE = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Google Gemini generateContent",
    default_model=DEFAULT_MODEL,
    tool_format="gemini",
    path="/v1beta/models/{model}:generateContent",
    stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    constraints=constraints,
    id_scheme=lambda model: _IDS if capabilities_of(model).call_ids else _POSITIONAL_IDS,
    name_rule=_names,
    parse_request=parse_request,
    render_request=render_request,
    render_items=render_items,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=stream_opener("segue.wire.gemini.stream_in:GeminiReader"),
    stream_renderer=renderer_opener("segue.wire.gemini.stream_out:GeminiStreamRenderer"),
    parse_error=parse_error,
    render_error=render_error,
    error_forms=ERROR_FORMS,
    reasoning_place="call",
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    typed_keys=lambda _item: ITEM_KEYS,
    tool_keys=TOOL_KEYS,
    families=("gemini",),
    text_part_type=None,
    served_families=frozenset({"gemini", "gemma"}),
    key_header="x-goog-api-key",
    http=HttpForm(
        base_version=r"/v\d+(?:alpha|beta)?\d*$",
        model_folders=True,
        models_path="/v1beta/models?pageSize=1000",
        caller_headers=("x-goog-api-client",),
    ),
    conversation_key="contents",
)

"""The Converse API of Amazon Bedrock: one API for models of many vendors, each with additional rules."""

from __future__ import annotations

import re

from msgspec.structs import replace

from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints, FilePlace
from segue.wire.anthropic import constraints as claude_constraints
from segue.wire.base import Wire
from segue.wire.bedrock.capabilities import API, DEFAULT_MODEL, Capabilities, capabilities_of
from segue.wire.bedrock.errors import ERROR_FORMS
from segue.wire.bedrock.items import ITEM_KEYS, block_kind
from segue.wire.bedrock.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.bedrock.request import BODY_KEYS, parse_request, render_items, render_request
from segue.wire.bedrock.tools import TOOL_KEYS
from segue.wire.http_form import HttpForm
from segue.wire.ids import IdScheme, mistral_scheme, prefix_scheme
from segue.wire.names import NameRule
from segue.wire.stream_openers import renderer_opener, stream_opener

# BED-01, and the rules of the model vendors, ANT-01 and MIS-01
_IDS = prefix_scheme(API, "tooluse_", limit=64, pattern=r"[a-zA-Z0-9_.:-]{1,64}")
_CLAUDE_IDS = prefix_scheme(API, "tooluse_", limit=64, pattern=r"[a-zA-Z0-9_-]{1,64}")
# MIS-01: older models also accept the ids of the service.
_MISTRAL_IDS = mistral_scheme()
_TAKES_LONG_IDS = re.compile(r"pixtral-large-2502|mistral-(?:large|small)-2402")
_LONG_MISTRAL_IDS = mistral_scheme(pattern=r"(?=(?:[^a-zA-Z0-9]*[a-zA-Z0-9]){9})[a-zA-Z0-9_.:-]{1,64}")
# BED-09: no model of Claude reads from S3; Nova does so for images alone inside of a result.
_CLAUDE_FILES: frozenset[FilePlace] = frozenset({("message", "image"), ("message", "document"), ("result", "image")})
_NOVA_FILES: frozenset[FilePlace] = frozenset({("result", "document"), ("result", "video")})
# BED-02
_VALID_NAME = r"[a-zA-Z0-9_-]{1,64}"


@cache_by_model
def constraints(model: Model) -> Constraints:
    """Return the constraints of a model: the `anthropic` row for Claude, else the row of its family."""
    capabilities = capabilities_of(model)
    if model.family == "claude":
        # BED-08, BED-09
        return replace(
            _add_service_rules(model, capabilities, claude_constraints(model)),
            allows_blank_text=True,
            refused_media=frozenset({"video"}),
            refused_files=_CLAUDE_FILES,
        )
    return _add_service_rules(
        model,
        capabilities,
        Constraints(
            api=API,
            provider=API,
            # BED-07: text in the message of the results, or in a message of its own
            result_grouping="joint" if capabilities.text_with_results else "alone",
            filler_after_results=not capabilities.text_with_results,
            # BED-04, BED-05
            ending=capabilities.ending,
            system_position="top",
            later_system="text",
            # BED-11
            reasoning_replay=capabilities.reasoning_replay,
            reasoning_binding="model",
            refused_files=_NOVA_FILES if model.family == "nova" else frozenset(),
        ),
    )


def _add_service_rules(model: Model, capabilities: Capabilities, row: Constraints) -> Constraints:
    """Return the constraints of a model with the rules of the service, which apply to every model."""
    return replace(
        row,
        api=API,
        provider=API,
        id_pattern=_ids(model).pattern,
        name_pattern=_VALID_NAME,
        hosted_pattern=r"[\s\S]*" if capabilities.hosted_tools else r"(?!)",
        allows_no_messages=False,
        # BED-10
        alternation="strict",
        # BED-06
        first_speaker="human",
        first_speaker_same_api="any" if capabilities.assistant_first else "human",
        has_error_flag=capabilities.error_flag,
        keeps_own_errors=capabilities.error_flag,
        option_ranges={**row.option_ranges, "temperature": (0, 1), "top_p": (0, 1)},
        # BED-08
        empty_text="refused",
        allows_blank_text=False,
        allows_blank_messages=False,
        empty_message_speakers=frozenset(),
        media_in_user=capabilities.user_media,
        media_in_results=capabilities.result_media,
        keeps_own_result_media=capabilities.keeps_result_media,
        # ANT-18
        errors_need_text=model.family == "claude",
        # «you must also include a text field» in a message with a document
        media_needs_text=frozenset({"document"}),
        unchanged_text_kind=block_kind,
        # BED-03
        tools_required="always",
        response_formats=row.response_formats if model.family == "claude" else frozenset(),
    )


def _ids(model: Model) -> IdScheme:
    match model.family:
        case "claude":
            return _CLAUDE_IDS
        case "mistral":
            return _LONG_MISTRAL_IDS if _TAKES_LONG_IDS.search(model.name) else _MISTRAL_IDS
        case _:
            return _IDS


WIRE = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Amazon Bedrock Converse",
    default_model=DEFAULT_MODEL,
    tool_format="bedrock",
    path="/model/{model}/converse",
    stream_path="/model/{model}/converse-stream",
    constraints=constraints,
    id_scheme=_ids,
    name_rule=lambda _model: NameRule(),
    parse_request=parse_request,
    render_request=render_request,
    render_items=render_items,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=stream_opener("segue.wire.bedrock.stream_in:BedrockReader"),
    stream_renderer=renderer_opener("segue.wire.bedrock.stream_out:BedrockStreamRenderer"),
    parse_error=parse_error,
    render_error=render_error,
    error_forms=ERROR_FORMS,
    reasoning_place="signature",
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    typed_keys=lambda _item: ITEM_KEYS,
    tool_keys=TOOL_KEYS,
    model_key="modelId",
    text_part_type=None,
    http=HttpForm(
        models_path="/foundation-models",
        models_host=("bedrock-runtime.", "bedrock."),
        error_header="x-amzn-errortype",
        stream_type="application/vnd.amazon.eventstream",
        keep_alive=b"",
    ),
    cache_marker="cachePoint",
    # Models keep the tool format of their vendor.
    tool_formats=frozenset({"anthropic", "bedrock", "mistral"}),
)

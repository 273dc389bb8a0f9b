"""The wire `openai-responses`: OpenAI's Responses API, the base of its dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.ranges import BodyRange
from segue.wire.base import ApiError, CompactionForm, CompactionThreshold, Wire
from segue.wire.ids import prefix_scheme
from segue.wire.json_values import JsonObject, objects_in
from segue.wire.names import NAMESPACE_SEPARATOR, NameRule
from segue.wire.openai_responses.context import OPENAI, ResponsesDialect
from segue.wire.openai_responses.errors import ERROR_FORMS
from segue.wire.openai_responses.item_types import COMPACTION_TYPES
from segue.wire.openai_responses.messages import ITEM_KEYS
from segue.wire.openai_responses.options import VENDOR_OPTION_KEYS
from segue.wire.openai_responses.reply import parse_reply, render_reply
from segue.wire.openai_responses.request import BODY_KEYS, parse_request, render_items, render_request
from segue.wire.openai_responses.required_fields import typed_keys
from segue.wire.openai_shared import (
    OPENAI_APIS,
    OPENAI_RANGES,
    TOOL_KEYS,
    TOP_LOGPROBS,
    is_reasoning_model,
    parse_error,
    render_error,
)
from segue.wire.stream_openers import renderer_opener, stream_opener

# OAI-RESP-01
_IDS = prefix_scheme("openai", "call_", limit=64, pattern=r"[\s\S]{1,64}")
_MEDIA_KINDS = frozenset({"image", "document"})


def _find_threshold(value: Any) -> CompactionThreshold | None:
    entries = [entry for entry in objects_in(value) if entry.get("type") == "compaction"]
    tokens = entries[-1].get("compact_threshold") if entries else None
    return CompactionThreshold(tokens) if isinstance(tokens, int) and tokens > 0 else None


_COMPACTION = CompactionForm(
    frozenset(COMPACTION_TYPES),
    ("encrypted_content",),
    reply_items=lambda reply: list(reply["output"]),
    trigger="compaction_trigger",
    find_threshold=_find_threshold,
    make=lambda key, _text, envelope: {"type": "compaction", "id": f"cmp_{key}", "encrypted_content": envelope},
)


# DS-11: calls are folded into assistant messages, so that nothing may stand between them and their outputs.
# Reasoning is plain text, not bound to the item after it.
FOLDED_CALLS: Mapping[str, Any] = {
    "results_adjacent": True,
    "results_in_call_order": True,
    "calls_last": True,
    "reasoning_replay": "plain",
    "accepts_unknown_reasoning": True,
    "reasoning_precedes_item": False,
    "compactions": "none",
}


@cache_by_model
def constraints(model: Model) -> Constraints:
    """Return the constraints of a model. An unknown model is treated as a reasoning model."""
    row = _openai_constraints(model)
    return msgspec.structs.replace(row, **FOLDED_CALLS) if model.family == "deepseek" else row


def _openai_constraints(model: Model) -> Constraints:
    return Constraints(
        OPENAI.name,
        OPENAI.provider,
        # OAI-RESP-06
        results_adjacent=False,
        # OAI-RESP-25: outputs are paired with calls by id, at any position.
        id_pattern=_IDS.pattern,
        # OAI-RESP-24
        system_position="top",
        later_system="developer",
        # OAI-RESP-11, OAI-RESP-12: bound to the organisation, not to the model.
        reasoning_replay="signed",
        can_reason=is_reasoning_model(model) or model.family != "gpt" or not model.version,
        # OAI-RESP-07 to OAI-RESP-09
        reasoning_precedes_item=True,
        compactions="anywhere",
        # The error text names input messages; instructions are not known to be enough.
        json_word="messages",
        # OAI-RESP-26
        option_ranges=OPENAI_RANGES,
        body_ranges=(
            TOP_LOGPROBS,
            BodyRange(("max_output_tokens",), 1),
            BodyRange(("max_tool_calls",), 1),
            BodyRange(("context_management", "compact_threshold"), 1000),
        ),
        has_error_flag=False,
        empty_message_speakers=frozenset({"human", "ai", "system"}),
        # OAI-RESP-15
        media_in_user=_MEDIA_KINDS,
        # OAI-RESP-16
        media_in_results=_MEDIA_KINDS,
        file_id_kinds=_MEDIA_KINDS,
        file_id_apis=OPENAI_APIS,
    )


def _names(model: Model) -> NameRule:
    # OAI-RESP-19: the limit is 128 in newer specifications.
    # OAI-CHAT-08: reasoning models have been observed to accept a dot.
    return NameRule(
        same_api_allowed="." if is_reasoning_model(model) else "",
        same_api_limit=128,
        same_api_separator=NAMESPACE_SEPARATOR,
        same_api_custom_unchecked=True,
    )


def make_wire(
    dialect: ResponsesDialect,
    title: str,
    default_model: str,
    constraints: Callable[[Model], Constraints],
    *,
    kind: Literal["wire", "dialect", "server"] = "dialect",
    render_error: Callable[[ApiError], JsonObject] = render_error,
    base_path: str = "/v1",
    **row: Any,
) -> Wire:
    """Build the wire of a dialect. `row` has other fields of `Wire`."""
    return Wire(
        name=dialect.name,
        kind=kind,
        provider=dialect.provider,
        title=title,
        default_model=default_model,
        tool_format="openai",
        path="/responses",
        constraints=constraints,
        id_scheme=lambda _model: _IDS,
        name_rule=_names,
        parse_request=partial(parse_request, dialect=dialect),
        render_request=partial(render_request, dialect=dialect),
        render_items=partial(render_items, dialect=dialect),
        parse_reply=partial(parse_reply, dialect=dialect),
        render_reply=partial(render_reply, dialect=dialect),
        open_stream=stream_opener("segue.wire.openai_responses.stream_in:ResponsesReader", dialect),
        stream_renderer=renderer_opener("segue.wire.openai_responses.stream_out:ResponsesRenderer", dialect),
        parse_error=parse_error,
        render_error=render_error,
        error_forms=ERROR_FORMS,
        reasoning_place="encrypted",
        compaction=_COMPACTION,
        # A dialect may not accept an id of another provider's response.
        body_keys=BODY_KEYS if kind != "dialect" else BODY_KEYS - {"previous_response_id"},
        item_keys=ITEM_KEYS,
        typed_keys=typed_keys,
        tool_keys=TOOL_KEYS,
        invalid_json_arguments=True,
        make_reply_id=partial(dialect.derive_id, dialect.response_prefix),
        custom_tools=True,
        vendor_options=VENDOR_OPTION_KEYS if dialect.vendor_options else {},
        # `store` defaults to true, so `false` carries meaning.
        meaningful_when_false=frozenset({"store"}),
        # OAI-RESP-25
        unique_call_ids=True,
        on=OPENAI.name if kind == "dialect" else None,
        text_part_type="input_text",
        base_path=base_path,
        conversation_key="input",
        volatile_field="client_metadata",
        **row,
    )


# The newest model in the rulebook; for it, Chat rejects reasoning together with tools (OAI-CHAT-17).
WIRE = make_wire(
    OPENAI,
    "OpenAI Responses",
    "gpt-5.6-terra",
    constraints,
    kind="wire",
    families=("gpt",),
    served_families=frozenset({"gpt"}),
    # Without stored items, reasoning is returned only if it is requested.
    stateless_fields={"store": False, "include": ["reasoning.encrypted_content"]},
)

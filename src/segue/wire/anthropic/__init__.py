"""The Anthropic Messages API."""

from __future__ import annotations

from typing import Any

import msgspec

from segue.canonical.request import Request
from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.render.ranges import NO_MAXIMUM, BodyRange
from segue.wire.anthropic.capabilities import API, DEFAULT_MODEL, capabilities_of
from segue.wire.anthropic.errors import ERROR_FORMS
from segue.wire.anthropic.items import ITEM_KEYS, TOOL_CHANGES, block_kind, typed_keys
from segue.wire.anthropic.reply import parse_error, parse_reply, render_error, render_reply
from segue.wire.anthropic.request import BODY_KEYS, parse_request, render_items, render_request
from segue.wire.anthropic.tools import TOOL_KEYS
from segue.wire.base import CompactionForm, CompactionThreshold, Wire, is_random_id
from segue.wire.http_form import HttpForm
from segue.wire.ids import prefix_scheme
from segue.wire.json_values import object_or_none, objects_in, string_or_none
from segue.wire.names import NameRule
from segue.wire.stream_openers import renderer_opener, stream_opener

# ANT-01: no other characters; the API documents no length limit
_VALID_ID = r"[a-zA-Z0-9_-]+"
_IDS = prefix_scheme(API, "toolu_", limit=64, pattern=_VALID_ID)
_MEDIA_KINDS = frozenset({"image", "document"})
_DEFAULT_THRESHOLD = 150_000


def _find_threshold(value: Any) -> CompactionThreshold | None:
    edits = objects_in((object_or_none(value) or {}).get("edits"))
    found = [edit for edit in edits if str(edit.get("type")).startswith("compact_")]
    if not found:
        return None
    tokens = (object_or_none(found[-1].get("trigger")) or {}).get("value")
    return CompactionThreshold(
        tokens if isinstance(tokens, int) and tokens > 0 else _DEFAULT_THRESHOLD,
        found[-1].get("pause_after_compaction") is True,
        string_or_none(found[-1].get("instructions")) or "",
    )


_COMPACTION = CompactionForm(
    frozenset({"compaction"}),
    ("content", "encrypted_content"),
    reply_items=lambda reply: [{"role": "assistant", "content": reply["content"]}],
    request_key="compaction",
    find_threshold=_find_threshold,
    finish="pause",
    empty_code="compaction_nothing_to_summarize",
    make=lambda _key, text, envelope: {"type": "compaction", "content": text, "signature": envelope},
    in_messages=True,
)
_RANGES = {"max_tokens": (0, NO_MAXIMUM), "temperature": (0, 1), "top_p": (-1, 1), "top_k": (0, NO_MAXIMUM)}
_TRIGGER = BodyRange(("context_management", "edits", "trigger", "value"), 50_000, type="compact_20260112")


@cache_by_model
def constraints(model: Model) -> Constraints:
    """Return the constraints of a model; an unknown version counts as the newest."""
    row = _claude_constraints(model)
    return msgspec.structs.replace(row, **_deepseek_row(model)) if model.family == "deepseek" else row


def _deepseek_row(model: Model) -> dict[str, Any]:
    """DS-03: DeepSeek's own server of this API needs reasoning beside calls, and checks no signatures."""
    return {
        "reasoning_replay": "plain",
        "reasoning_binding": "provider",
        "accepts_unknown_reasoning": True,
        "reasoning_required_on_calls": "default" if model.reasons_by_default else "requested",
        "open_exchange_needs_reasoning": False,
        "compactions": "none",
    }


def _claude_constraints(model: Model) -> Constraints:
    claude = model.family == "claude" and bool(model.version)
    capabilities = capabilities_of(model)
    return Constraints(
        api=API,
        provider=API,
        # ANT-04, ANT-05: all results in the next message, at its head
        result_grouping="joint",
        # ANT-03
        id_pattern=_VALID_ID,
        name_pattern=r"[a-zA-Z0-9_-]{1,128}",
        # ANT-21
        alternation="merged",
        first_speaker="human" if claude and not model.at_least(4) else "any",
        # ANT-22, ANT-23
        ending="prefill" if claude and not model.at_least(4, 6) else "human",
        allows_prefill_while_reasoning=False,
        allows_blank_ending=False,
        # ANT-20
        system_position="top",
        later_system="text",
        # ANT-26, ANT-28, ANT-29
        reasoning_replay="signed",
        can_reason=capabilities.budgets or capabilities.adaptive,
        reasoning_binding="prefix" if claude and model.at_least(5, 1) else "model",
        # ANT-24, ANT-27, ANT-30
        open_exchange_needs_reasoning=True,
        reasoning_is_adaptive=capabilities.adaptive,
        allows_reasoning_at_end=False,
        reasoning_forbids_forced_choice=True,
        # ANT-42: older models take a `top_p` of -1 for none.
        option_ranges=_RANGES,
        # ANT-52
        body_ranges=(_TRIGGER,),
        tool_changes=TOOL_CHANGES,
        compactions="first",
        has_error_flag=True,
        # ANT-13 to ANT-16
        empty_text="refused",
        allows_blank_messages=False,
        empty_message_speakers=frozenset({"ai", "system"}),
        media_in_user=_MEDIA_KINDS,
        # ANT-18
        media_in_results=_MEDIA_KINDS,
        errors_need_text=True,
        unchanged_text_kind=block_kind,
        # ANT-09
        hosted_needs_result=True,
        # ANT-36
        tools_required="cross-api",
        response_formats=frozenset({"schema"}) if capabilities.schemas else frozenset(),
    )


def _keeps_reply_id(reply_id: str, request: Request) -> bool:
    """Return whether a later request may name the id: in a thread. Otherwise clients only merge replies by it."""
    has_thread = request.native is not None and request.native.fragment.get("thread") is not None
    return has_thread and is_random_id(reply_id, request)


WIRE = Wire(
    name=API,
    kind="wire",
    provider=API,
    title="Anthropic Messages",
    default_model=DEFAULT_MODEL,
    tool_format="anthropic",
    path="/v1/messages",
    constraints=constraints,
    id_scheme=lambda _model: _IDS,
    name_rule=lambda _model: NameRule(same_api_limit=128),
    parse_request=parse_request,
    render_request=render_request,
    render_items=render_items,
    parse_reply=parse_reply,
    render_reply=render_reply,
    open_stream=stream_opener("segue.wire.anthropic.stream_in:AnthropicReader"),
    stream_renderer=renderer_opener("segue.wire.anthropic.stream_out:AnthropicStreamRenderer"),
    parse_error=parse_error,
    render_error=render_error,
    error_forms=ERROR_FORMS,
    reasoning_place="signature",
    compaction=_COMPACTION,
    body_keys=BODY_KEYS,
    item_keys=ITEM_KEYS,
    typed_keys=typed_keys,
    tool_keys=TOOL_KEYS,
    families=("claude",),
    served_families=frozenset({"claude"}),
    key_header="x-api-key",
    http=HttpForm(
        base_version="/v1$",
        models_path="/v1/models?limit=1000",
        headers={"anthropic-version": "2023-06-01"},
        caller_headers=("anthropic-version", "anthropic-beta"),
        # ANT-47: also for a body that carries a block, whoever made the request for it.
        betas=((b"compaction", "compact-2026-09-04"), (b"compaction", "compact-2026-01-12")),
        keep_alive=b'event: ping\ndata: {"type":"ping"}\n\n',
    ),
    cache_marker="cache_control",
    make_reply_id=lambda key: f"msg_{key}",
    keeps_reply_id=_keeps_reply_id,
)

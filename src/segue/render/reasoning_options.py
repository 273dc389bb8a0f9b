"""The passes that insert reasoning placeholders, and that disable reasoning where the target would reject it."""

from __future__ import annotations

from itertools import filterfalse

from msgspec.structs import replace

from segue.canonical.blocks import Block, Message, Origin, Thinking, ToolResponse, calls_of
from segue.canonical.request import Reasoning, Tool, ToolChoice
from segue.render.compaction import is_compaction
from segue.render.constraints import TEXTS
from segue.render.draft import Draft, has_reasoning

PLACEHOLDER_INSERTED = "added a reasoning placeholder: the target requires reasoning and none is available"


def insert_reasoning_placeholders(draft: Draft) -> Draft:
    """Add a placeholder to messages that must have reasoning and have none (KIM-04, GEM-17, DS-01, DS-02).

    All turns are completed, even if the target checks only the current exchange, so that the prefix is stable.
    """
    if not _needs_placeholders(draft):
        return draft
    origin = Origin(draft.constraints.provider, draft.model, identity="absent")
    signature = draft.constraints.placeholder_signature

    def fill(position: int, message: Message, signed: bool) -> Message:
        calls = [(at, block) for at, block in enumerate(message.blocks) if draft.is_client_call(block)]
        if not calls:
            needed = position in text_replies and not has_reasoning(message)
            return _with_placeholder(message, 0, None) if needed else message
        if signed or (_is_signed(message, calls[0][0]) if signature else has_reasoning(message)):
            return message
        at, call = calls[0] if signature else (0, calls[0][1])
        return _with_placeholder(message, at, call.id)

    def _with_placeholder(message: Message, at: int, call_id: str | None) -> Message:
        draft.report.add("reasoning", PLACEHOLDER_INSERTED, call_id=call_id, level="note")
        placeholder = Thinking("" if signature else TEXTS.reasoning_placeholder, signature or None, origin=origin)
        return message.with_blocks((*message.blocks[:at], placeholder, *message.blocks[at:]))

    text_replies = _text_replies_needing_reasoning(draft)
    messages: list[Message] = []
    # Neighbouring replies count as one, and one signature is enough for them.
    called = False
    for position, message in enumerate(draft.messages):
        messages.append(fill(position, message, signed=bool(signature) and called))
        called = message.speaker == "ai" and (called or any(draft.is_client_call(block) for block in message.blocks))
    return draft.with_messages(messages)


def _text_replies_needing_reasoning(draft: Draft) -> frozenset[int]:
    """Return positions of replies without calls that need reasoning; same-API only in exchanges with calls (DS-02)."""
    if not draft.constraints.reasoning_required_on_text:
        return frozenset()
    positions: set[int] = set()
    exchange: list[int] = []
    for position, message in enumerate((*draft.messages, Message("human", ()))):
        if message.speaker == "ai":
            exchange.append(position)
        elif message.speaker == "human":
            called = any(calls_of(draft.messages[at]) for at in exchange)
            positions.update(at for at in exchange if called or not draft.is_native(draft.messages[at]))
            exchange = []
    return frozenset(positions)


def _needs_placeholders(draft: Draft) -> bool:
    settings = draft.options.reasoning
    match draft.constraints.reasoning_required_on_calls:
        case "never":
            return False
        case "requested":
            return draft.reasoning_on
        case "default":
            return settings is None or settings.enabled is not False or not draft.constraints.can_disable_reasoning
        case "always":
            # A same-API body without a model name may be for a model that has no such constraint.
            return not (draft.is_same_api and draft.model is None)


def _is_signed(message: Message, position: int) -> bool:
    """Return whether a bare signature precedes the block at this position: without text or a fragment of its own."""
    before = message.blocks[position - 1] if position else None
    return isinstance(before, Thinking) and bool(before.signature) and not before.text and before.native is None


def adjust_reasoning(draft: Draft) -> Draft:
    """Switch reasoning off where the reasoning options are not valid with this history."""
    constraints = draft.constraints
    choice = draft.options.tool_choice
    # ANT-30, DS-09
    forced = choice is not None and choice.mode in ("required", "tool")
    if (
        draft.will_reason
        and _forbids_forced_choice(draft)
        and forced
        and not (draft.is_same_api and _is_adaptive(draft))
    ):
        if constraints.can_disable_reasoning:
            return _disable_reasoning(draft, "not allowed with a forced tool choice")
        why = "`tool_choice` set to auto: the model does not accept a forced tool while reasoning is on"
        draft.report.add("adjusted", why, subject="tool_choice")
        return draft.with_options(tool_choice=ToolChoice("auto"))
    # OAI-CHAT-17
    if (
        constraints.reasoning_excludes_tools
        and draft.will_reason
        and any(_is_function(tool, draft) for tool in draft.tools)
    ):
        return _disable_reasoning(draft, "the model does not accept it together with function tools")
    if not draft.reasoning_on:
        return draft
    # ANT-24
    if constraints.open_exchange_needs_reasoning and not _is_adaptive(draft) and _starts_without_reasoning(draft):
        if constraints.reasoning_is_adaptive and draft.options.reasoning is not None:
            return draft.with_options(reasoning=replace(draft.options.reasoning, adaptive=True))
        return _disable_reasoning(draft, "the current tool loop does not begin with reasoning")
    return draft


def _forbids_forced_choice(draft: Draft) -> bool:
    constraints = draft.constraints
    return constraints.reasoning_forbids_forced_choice or (
        constraints.forced_choice_disables_reasoning and not draft.is_same_api
    )


def _is_function(tool: Tool, draft: Draft) -> bool:
    """Return whether the tool is a function tool; same-API, a tool of another type may be one too."""
    return tool.kind == "function" or (tool.kind == "hosted" and draft.is_same_api)


def _is_adaptive(draft: Draft) -> bool:
    settings = draft.options.reasoning or Reasoning()
    same_model = draft.is_same_api and draft.model == draft.request.model
    is_accepted = draft.constraints.reasoning_is_adaptive
    return (settings.budget is None or settings.adaptive) and (is_accepted or (settings.adaptive and same_model))


def _starts_without_reasoning(draft: Draft) -> bool:
    """Return whether the first reply of the current exchange has calls and does not begin with reasoning.

    Neighbouring replies count as one.
    """
    opener: list[Block] = []
    closed = False
    for message in draft.messages:
        if message.speaker == "ai":
            opener += () if closed else filterfalse(is_compaction, message.blocks)
        elif message.speaker == "system" or all(isinstance(block, ToolResponse) for block in message.blocks):
            closed = bool(opener)
        else:
            opener, closed = [], False
    return any(draft.is_client_call(block) for block in opener) and not isinstance(opener[0], Thinking)


def _disable_reasoning(draft: Draft, why: str) -> Draft:
    draft.report.add("adjusted", f"reasoning disabled: {why}", subject="reasoning", fault="rendering")
    return draft.with_options(reasoning=Reasoning(enabled=False, effort="none"))

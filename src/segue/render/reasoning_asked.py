"""The passes about asking for reasoning: placeholders where the target insists on it, none where it can't be lawful."""

from __future__ import annotations

from segue.canonical.blocks import Block, Message, Origin, Thinking, ToolResponse, calls_of
from segue.canonical.request import Reasoning, Tool, ToolChoice
from segue.render.demands import TEXTS
from segue.render.draft import Draft, thinks

__all__ = ["PLACEHOLDER", "open_exchange", "placeholders"]

PLACEHOLDER = "a placeholder for reasoning that is not to be had"


def placeholders(draft: Draft) -> Draft:
    """Where messages must carry reasoning, one that has none gets a placeholder (KIM-04, GEM-17, DS-01, DS-02).

    Every turn gets it, also where only the current exchange is looked at: what was said once is never said otherwise.
    """
    if not _on_calls(draft):
        return draft
    origin = Origin(draft.demands.provider, draft.model, identity="absent")
    signature = draft.demands.placeholder_signature

    def filled(position: int, message: Message, signed: bool) -> Message:
        calls = [(at, block) for at, block in enumerate(message.blocks) if draft.pairs_call(block)]
        if not calls:
            wanting = position in wordy and not thinks(message)
            return _with_placeholder(message, 0, None) if wanting else message
        if signed or (_is_signed(message, calls[0][0]) if signature else thinks(message)):
            return message
        at, call = calls[0] if signature else (0, calls[0][1])
        return _with_placeholder(message, at, call.id)

    def _with_placeholder(message: Message, at: int, call_id: str | None) -> Message:
        draft.report.add("reasoning", PLACEHOLDER, call_id=call_id)
        made = Thinking("" if signature else TEXTS.no_reasoning, signature or None, origin=origin)
        return message.holding((*message.blocks[:at], made, *message.blocks[at:]))

    wordy = _wanting_words(draft)
    messages: list[Message] = []
    # Replies that follow each other are one, and one signature is enough for them.
    asked = False
    for position, message in enumerate(draft.messages):
        messages.append(filled(position, message, signed=bool(signature) and asked))
        asked = message.speaker == "ai" and (asked or any(draft.pairs_call(block) for block in message.blocks))
    return draft.with_messages(messages)


def _wanting_words(draft: Draft) -> frozenset[int]:
    """Where messages stand that must carry reasoning without having calls; at home in exchanges with calls (DS-02)."""
    if not draft.demands.reasoning_on_words:
        return frozenset()
    found: set[int] = set()
    exchange: list[int] = []
    for position, message in enumerate((*draft.messages, Message("human", ()))):
        if message.speaker == "ai":
            exchange.append(position)
        elif message.speaker == "human":
            called = any(calls_of(draft.messages[at]) for at in exchange)
            found.update(at for at in exchange if called or not draft.at_home(draft.messages[at]))
            exchange = []
    return frozenset(found)


def _on_calls(draft: Draft) -> bool:
    asked = draft.options.reasoning
    match draft.demands.reasoning_on_calls:
        case "never":
            return False
        case "asked":
            return draft.reasoning_on
        case "default":
            return asked is None or asked.enabled is not False or not draft.demands.reasoning_switch
        case "always":
            # At home a body that names no model may be for one that has no such demand.
            return not (draft.home and draft.model is None)


def _is_signed(message: Message, position: int) -> bool:
    """Whether the block at this place has a signature before it: one without text or a fragment of its own."""
    before = message.blocks[position - 1] if position else None
    return isinstance(before, Thinking) and bool(before.signature) and not before.text and before.native is None


def open_exchange(draft: Draft) -> Draft:
    """What the request asks of reasoning must be lawful with this history; if not, reasoning is switched off."""
    demands = draft.demands
    choice = draft.options.tool_choice
    # ANT-30, DS-09
    forced = choice is not None and choice.mode in ("required", "tool")
    if draft.reasons and demands.reasoning_forbids_forced_choice and forced and not (draft.home and _adapts(draft)):
        if demands.reasoning_switch:
            return _switched_off(draft, "reasoning can't go with a forced tool choice")
        draft.report.add("adjusted", "no tool can be forced while the model reasons: left to it", subject="tool_choice")
        return draft.with_options(tool_choice=ToolChoice("auto"))
    if not draft.reasoning_on:
        return draft
    # OAI-CHAT-17
    if demands.reasoning_refuses_tools and any(_is_function(tool, draft) for tool in draft.tools):
        return _switched_off(draft, "this model takes no reasoning beside functions here")
    # ANT-24
    if demands.reasoning_opens_loop and not _adapts(draft) and _opens_without_thinking(draft):
        return _switched_off(draft, "the open exchange does not begin with reasoning")
    return draft


def _is_function(tool: Tool, draft: Draft) -> bool:
    """A tool of another type, at home, is taken for one that may be."""
    return tool.kind == "function" or (tool.kind == "hosted" and draft.home)


def _adapts(draft: Draft) -> bool:
    asked = draft.options.reasoning or Reasoning()
    stays = draft.home and draft.model == draft.request.model
    return asked.budget is None and (draft.demands.reasoning_adapts or (asked.adaptive and stays))


def _opens_without_thinking(draft: Draft) -> bool:
    """Whether the reply that opens the current exchange has calls and does not begin with reasoning.

    Neighbours count as one reply.
    """
    opener: list[Block] = []
    closed = False
    for message in draft.messages:
        if message.speaker == "ai":
            opener += () if closed else message.blocks
        elif message.speaker == "system" or all(isinstance(block, ToolResponse) for block in message.blocks):
            closed = bool(opener)
        else:
            opener, closed = [], False
    return any(draft.pairs_call(block) for block in opener) and not isinstance(opener[0], Thinking)


def _switched_off(draft: Draft, why: str) -> Draft:
    draft.report.add(
        "adjusted", f"{why}: reasoning is switched off for this request", subject="reasoning", fault="rendering"
    )
    return draft.with_options(reasoning=Reasoning(enabled=False, effort="none"))

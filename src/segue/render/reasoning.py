"""The passes about reasoning: what goes back to its maker, what is bound to a prefix, and what a request may ask for.

Reasoning never breaks a pair: these passes touch `Thinking` blocks and options, and of other blocks no more than the
promise that their fragment may go back as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
)
from segue.canonical.history import bound_to
from segue.canonical.jsontext import write_sorted
from segue.canonical.request import Reasoning, Request, Tool, ToolChoice
from segue.models import same_model
from segue.render.demands import TEXTS
from segue.render.draft import Draft, thinks
from segue.render.transcript import Transcript

__all__ = [
    "PLACEHOLDER",
    "bound",
    "keeps_reasoning",
    "open_exchange",
    "placeholders",
    "prefix_digests",
    "reasoning",
    "remembering",
    "sent_digest",
    "unnamed",
]


PLACEHOLDER = "a placeholder for reasoning that is not to be had"
_NOT_OWN = "reasoning of {whose} can't go to {api}: left out"
_DAMAGED = "the signature of this reasoning of {whose} is none that {api} makes: left out"
_DETACHED = "reasoning of {whose} without what was made with it: left out"
_UNBOUND = "what came before this reasoning of {whose} has changed, and it is bound to that: left out"


def reasoning(draft: Draft) -> Draft:
    """Reasoning goes back to who made it, whole; the rest is left out or told as text."""

    def kept(message: Message) -> Message:
        if not thinks(message):
            return message
        stays = {id(block) for block in _staying(draft, message)}
        blocks: list[Block] = []
        for block in message.blocks:
            blocks += [block] if id(block) in stays else _told(draft, block, _why_not(draft, block))
        same = len(blocks) == len(message.blocks) and all(a is b for a, b in zip(blocks, message.blocks, strict=True))
        return message if same else message.holding(tuple(blocks))

    if draft.demands.reasoning_leads:
        return draft.with_messages(_leading(draft, kept))
    return draft.with_messages(kept(message) for message in draft.messages)


def _leading(draft: Draft, kept: Callable[[Message], Message]) -> Iterator[Message]:
    """The messages where reasoning stands before what was made with it; without it, that goes back without its name."""
    torn = False
    for message in draft.messages:
        if message.speaker != "ai":
            yield message
            continue
        made = kept(message)
        # OAI-RESP-08: what comes after reasoning that was torn from it may have been made with it.
        made = unnamed(made) if torn or made is not message else made
        attached = _without_detached(draft, made)
        torn = attached is not made and draft.at_home(made.blocks[-1])
        yield attached


def _without_detached(draft: Draft, message: Message) -> Message:
    """OAI-RESP-07: of reasoning at the end nobody knows what was made with it. What bears no id is not looked up."""
    end = len(message.blocks)
    while end and isinstance(block := message.blocks[end - 1], Thinking) and block.origin.item_id is not None:
        end -= 1
    if end == len(message.blocks):
        return message
    told = (made for block in message.blocks[end:] for made in _told(draft, block, _DETACHED))
    return message.holding((*message.blocks[:end], *told))


def unnamed(message: Message) -> Message:
    """The message with blocks that are written anew, so that they no longer claim to be what the provider keeps."""
    return message.holding(
        tuple(
            msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))
            if block.native is not None and block.native.intact and not _is_whole(block)
            else block
            for block in message.blocks
        )
    )


def _is_whole(block: Block) -> bool:
    """Whether nothing could be written in place of what the API gave."""
    hosted = (isinstance(block, ToolCall) and block.kind == "hosted") or (
        isinstance(block, ToolResponse) and block.hosted
    )
    return hosted or isinstance(block, Opaque)


def keeps_reasoning(draft: Draft, message: Message) -> bool:
    """Whether the reasoning of a message, if it has any, goes back."""
    return len(_staying(draft, message)) == sum(isinstance(block, Thinking) for block in message.blocks)


def _staying(draft: Draft, message: Message) -> list[Thinking]:
    """The reasoning of a message that may go back."""
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    if draft.policy.reasoning == "none":
        return []
    # A model that does not reason refuses what others thought, but a body that is its own stands.
    if not draft.demands.reasons and not (draft.home and draft.model == draft.request.model):
        return []
    if not draft.demands.reasoning_alone and not any(_says_something(block) for block in message.blocks):
        return []
    if draft.demands.reasoning == "refused":
        return []
    if draft.demands.reasoning == "none":
        return thoughts if draft.at_home(message) and draft.policy.reasoning == "native" else []
    own = [block for block in thoughts if _is_own(draft, block)]
    # ANT-25: all of it or none
    return [] if draft.demands.reasoning_whole and len(own) < len(thoughts) else own


def _says_something(block: Block) -> bool:
    return not isinstance(block, Thinking) and not (isinstance(block, Text) and not block.text)


def _why_not(draft: Draft, block: Block) -> str:
    return _DAMAGED if isinstance(block, Thinking) and _is_damaged(draft, block) else _NOT_OWN


def _is_damaged(draft: Draft, block: Thinking) -> bool:
    """GEM-18: a damaged signature is worse than none."""
    own = block.origin.provider == draft.demands.provider
    return own and bool(block.signature) and not re.fullmatch(draft.demands.own_signature, block.signature or "")


def _is_own(draft: Draft, block: Thinking) -> bool:
    if block.origin.provider != draft.demands.provider or _is_damaged(draft, block):
        return False
    if draft.demands.reasoning == "plain":
        return True
    # ANT-26: a block without its signature is refused.
    if not block.signature and not block.sealed:
        return False
    if draft.demands.reasoning_bound == "provider" or block.origin.model is None or draft.model is None:
        return True
    # ANT-29: bound to the producing model.
    return same_model(block.origin.model, draft.model)


def _told(draft: Draft, block: Block, why: str) -> list[Block]:
    if not isinstance(block, Thinking):
        return [block]
    if draft.policy.reasoning == "text" and block.text and not _is_placeholder(block):
        draft.report.add("reasoning", "reasoning is told as text", subject=block.origin.provider)
        return [Text(TEXTS.reasoning.format(content=block.text))]
    whose = block.origin.model or block.origin.provider
    draft.report.add("reasoning", why.format(whose=whose, api=draft.demands.api), subject=whose)
    return []


def _is_placeholder(block: Thinking) -> bool:
    return block.text == TEXTS.no_reasoning


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


def bound(draft: Draft) -> Draft:
    """Reasoning that is bound to everything before it (ANT-28) goes only where nothing before it has changed."""
    if draft.demands.reasoning_bound != "prefix" or not any(thinks(message) for message in draft.messages):
        return draft
    request = draft.request
    recorded = prefix_digests(request.system, request.tools, request.messages)
    expected = {
        id(block): block.prefix or recorded[position]
        for position, message in enumerate(request.messages)
        for block in message.blocks
        if isinstance(block, Thinking)
    }
    now = _digests_now(draft, draft.messages)
    for position, message in enumerate(draft.messages):
        thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
        if any(expected.get(id(block)) != now[position] for block in thoughts):
            return _dropped_from(draft, position)
    return draft


def _dropped_from(draft: Draft, start: int) -> Draft:
    messages = [
        message.holding(tuple(made for block in message.blocks for made in _told(draft, block, _UNBOUND)))
        if position >= start and thinks(message)
        else message
        for position, message in enumerate(draft.messages)
    ]
    return draft.with_messages(messages)


def sent_digest(transcript: Transcript) -> str:
    """The digest of a whole transcript: what a reply to it is bound to."""
    end = Message("ai", ())
    messages = (*transcript.messages, end)
    return _digests_now(transcript, messages)[-1]


def remembering(request: Request) -> tuple[Message, ...]:
    """The messages of a body, their reasoning bound to what stood before it there, whatever becomes of that later."""
    if not any(thinks(message) for message in request.messages):
        return request.messages
    digests = prefix_digests(request.system, request.tools, request.messages)
    return tuple(
        msgspec.structs.replace(message, blocks=bound_to(message.blocks, digest)) if thinks(message) else message
        for message, digest in zip(request.messages, digests, strict=True)
    )


def _digests_now(draft: Draft | Transcript, messages: Sequence[Message]) -> list[str]:
    return prefix_digests(_said_system(draft), _said_tools(draft), messages, changed=_changed_ids(draft))


def _changed_ids(draft: Draft | Transcript) -> frozenset[str]:
    """Canonical ids of calls that will not go out as they stood: under another id, or to a tool of another name."""
    demands = draft.demands
    seen: set[str] = set()
    changed: set[str] = set()
    for message in draft.messages:
        for call in calls_of(message):
            raw_id = call.origin.raw_id
            own = call.origin.provider == demands.provider and draft.policy.ids != "canonical"
            if not (own and raw_id and raw_id not in seen and re.fullmatch(demands.own_id, raw_id)):
                changed.add(call.id)
            rewritten = call.native is not None and not call.native.intact
            if rewritten or not re.fullmatch(demands.own_name, call.name):
                changed.add(call.id)
            seen.add(raw_id or "")
    return frozenset(changed)


def _said_tools(draft: Draft | Transcript) -> list[Tool]:
    """The declarations as they will go out: no name twice, none that can't be spelled as it is."""
    own = {tool.name: tool for tool in reversed(draft.tools) if re.fullmatch(draft.demands.own_name, tool.name)}
    return list(reversed(own.values()))


def _said_system(draft: Draft | Transcript) -> list[Text]:
    return [block for block in draft.system if block.text.strip()]


def prefix_digests(
    system: Sequence[Text], tools: Sequence[Tool], messages: Sequence[Message], *, changed: frozenset[str] = frozenset()
) -> list[str]:
    """For each message the digest of all that stands before it. How blocks are grouped into messages does not count."""
    digest = sha256(write_sorted([[block.text for block in system], [_declared(tool) for tool in tools]]))
    digests: list[str] = []
    for message in messages:
        digests.append(digest.hexdigest())
        side = "ai" if message.speaker == "ai" else "user"
        if not message.blocks:
            digest.update(write_sorted([side, "nothing"]))
        for block in message.blocks:
            digest.update(write_sorted([side, *_essence(block, changed)]))
    return digests


def _declared(tool: Tool) -> list[Any]:
    return [tool.name, tool.description, tool.parameters, tool.kind]


def _essence(block: Block, changed: frozenset[str]) -> list[Any]:
    match block:
        case Text():
            return ["text", block.text]
        case Thinking():
            return ["thinking", block.text, block.signature, block.sealed]
        case ToolCall():
            raw_id = block.id if block.id in changed else block.origin.raw_id
            return ["call", raw_id, block.name, block.arguments, block.arguments_text]
        case ToolResponse():
            content = [_essence(part, changed) for part in block.content or ()]
            return ["result", block.call_id, content, block.error]
        case Opaque(native=Native(fragment=fragment)):
            return ["opaque", block.kind, fragment]
        case Media() | Code() | Opaque():
            return ["other", msgspec.to_builtins(msgspec.structs.replace(block, native=None))]


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
    if demands.reasoning_refuses_tools and any(tool.kind == "function" for tool in draft.tools):
        return _switched_off(draft, "this model takes no reasoning beside functions here")
    # ANT-24
    if demands.reasoning_opens_loop and not _adapts(draft) and _opens_without_thinking(draft):
        return _switched_off(draft, "the open exchange does not begin with reasoning")
    return draft


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

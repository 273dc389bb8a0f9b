"""`/compact`: the model summarises the exchanges between the first and the last. The store keeps the originals."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from segue._conversation import Conversation
from segue.bridge.summary import Summary, describe_messages
from segue.canonical.tokens import estimate_settings
from segue.errors import InputError, format_count
from segue.runtime.events import Event, ReplyReceived

if TYPE_CHECKING:
    from segue.canonical.blocks import Message
    from segue.cli.chat_ui.chat import Chat

_STRATEGY = "middle-out"
_KEPT_SHARE = 5
"""The budget is this part of the conversation's tokens, without tools and system text."""


async def compact(chat: Chat) -> None:
    log, before = chat.session.log, chat.tokens
    fixed = min(before, ceil(estimate_settings(log.chat.state.request) * log.chat.state.token_estimator.ratio()))
    budget = fixed + max(1, (before - fixed) // _KEPT_SHARE)
    stretches = _find_stretches(log.chat, budget)
    if not stretches:
        chat.print_line(f"about {before:,} tokens, {fixed:,} of them tools and system text: nothing to compress")
        return
    messages = sum(map(len, stretches))
    chat.print_line(f"summarising {format_count(messages, 'message')} with {chat.endpoint.name}")
    summaries = [await _summarise(chat, stretch) for stretch in stretches]

    def next_summary(stretch: Sequence[Message]) -> str:
        # The model's summaries are longer than those of the trial, so a further stretch may be summarised.
        return summaries.pop(0) if summaries else _excerpt(stretch)

    log.compress(_STRATEGY, budget, summarise=next_summary)
    chat.print_line(f"compressed ({_STRATEGY}): about {before:,} → {chat.tokens:,} tokens; /undo restores it")


def _find_stretches(chat: Conversation, budget: int) -> list[Sequence[Message]]:
    """Return the runs of messages that are replaced by a summary each."""
    found: list[Sequence[Message]] = []

    def record(messages: Sequence[Message]) -> str:
        found.append(messages)
        return "…"

    Conversation.load(chat.dump()).compress(_STRATEGY, budget, summarise=record)
    return found


async def _summarise(chat: Chat, messages: Sequence[Message]) -> str:
    """Return the model's summary; `InputError` if it does not write one."""

    def count_usage(event: Event) -> None:
        if isinstance(event, ReplyReceived):
            chat.usage.on_event(event)

    summary = Summary(messages, chat.endpoint)
    while not summary.is_complete:
        ended = await chat.agent.ask_once(summary.instruction, summary.next_text, on_event=count_usage)
        if ended.outcome != "answered" or not ended.text.strip():
            raise InputError(f"no summary: {ended.text or ended.outcome}; /compress works without the model")
        summary.add_text(ended.text)
    return summary.text


def _excerpt(messages: Sequence[Message]) -> str:
    return describe_messages(messages)[:2_000]

"""Builds a reply from steps: blocks with ids and signatures, and the waits and breaks between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id
from segue.canonical.request import Reply, Usage
from segue.emulator.prompt_cache import estimate_tokens
from segue.emulator.providers.provider import Provider, RequestContext
from segue.emulator.steps import CallStep, CutStep, EndStep, ErrorStep, ReplySteps, Step, TextStep, ThinkStep, WaitStep
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Finished,
    InputDelta,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    block_events,
)

__all__ = ["ReplyBuilder", "StreamStep"]

StreamStep: TypeAlias = Event | WaitStep | ErrorStep | CutStep

_WORD_CHUNK = re.compile(r"\s*\S+\s?|\s+")
_ARGUMENT_CHUNK = 12
_FIRST_TIMESTAMP = 1_700_000_000
_DEFAULT_THOUGHT = "This needs little thought."


class ReplyBuilder:
    """One reply: the blocks of its steps, up to an error or cut.

    `object_arguments`: arguments are sent as an object, and invalid ones as an empty object.
    """

    def __init__(
        self,
        provider: Provider,
        context: RequestContext,
        steps: ReplySteps,
        *,
        number: int,
        prompt_tokens: int,
        cached_tokens: int,
        object_arguments: bool,
    ) -> None:
        thinks = provider.has_reasoning(context)
        if thinks and provider.always_reasons and not any(isinstance(step, ThinkStep) for step in steps):
            steps = (ThinkStep(_DEFAULT_THOUGHT), *steps)
        self.thoughts = [step.text for step in steps if isinstance(step, ThinkStep)] if thinks else []
        self.context = replace(context, thought_count=len(self.thoughts))
        self.steps = steps
        self._provider = provider
        self._prompt_tokens = prompt_tokens
        self._cached_tokens = cached_tokens
        self._object_arguments = object_arguments
        self._counts = {"calls": 0, "thoughts": 0}
        self._parts: list[tuple[Step, int]] = []
        blocks: list[Block] = []
        for step in steps:
            step_blocks = list(self._make_blocks(step))
            self._parts.append((step, len(step_blocks)))
            blocks += step_blocks
            if isinstance(step, ErrorStep | CutStep):
                break
        reply_id = provider.reply_id(context.ids)
        usage, end = self._count_usage(blocks), self._find_end(blocks)
        # There is no clock: replies are a second apart.
        reply = Reply(
            tuple(blocks),
            end.finish,
            usage,
            reply_id,
            context.model,
            stop_sequence=end.sequence,
            created=_FIRST_TIMESTAMP + number,
        )
        self.reply = provider.complete_reply(self.context, reply)
        """The whole reply."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.calls

    @property
    def break_step(self) -> ErrorStep | CutStep | None:
        """The error or cut that ends the reply, if any."""
        last = self._parts[-1][0] if self._parts else None
        return last if isinstance(last, ErrorStep | CutStep) else None

    def stream_steps(self) -> Iterator[StreamStep]:
        """Yields the stream events and steps of the reply, up to an error or cut."""
        reply = self.reply
        yield self._provider.make_reply_start(reply)
        index = 0
        cut = len(reply.blocks) - 1 if isinstance(self.break_step, CutStep) else None
        for step, count in self._parts:
            if isinstance(step, WaitStep | ErrorStep | CutStep):
                yield step
            for place in range(index, index + count):
                yield from self._block_events(place, ends=place != cut or _is_complete(reply.blocks[place]))
            index += count
        if not self.break_step:
            yield UsageUpdate(reply.usage or Usage())
            yield Finished(reply.finish, stop_sequence=reply.stop_sequence)

    def _block_events(self, place: int, *, ends: bool) -> Iterator[Event]:
        for event in _split_deltas(block_events(place, self.reply.blocks[place])):
            if isinstance(event, BlockStart):
                yield BlockStart(place, self._provider.initial_block(event.block))
            elif ends or not isinstance(event, BlockEnd):
                yield event

    def _find_end(self, blocks: Sequence[Block]) -> EndStep:
        for step in self.steps:
            if isinstance(step, EndStep):
                return step
        return EndStep("tool_calls" if any(isinstance(block, ToolCall) for block in blocks) else "stop")

    def _count_usage(self, blocks: Sequence[Block]) -> Usage:
        thought = sum(map(estimate_tokens, self.thoughts))
        return Usage(
            self._prompt_tokens, thought + _count_tokens(blocks), cache_read=self._cached_tokens, reasoning=thought
        )

    # ------------------------------------------------------------------------------------------------------- the blocks

    def _make_blocks(self, step: Step) -> Iterator[Block]:
        match step:
            case TextStep():
                yield Text(step.text)
            case ThinkStep() if self.thoughts:
                yield self._provider.make_thinking(self.context, self._next_index("thoughts"), step.text)
            case CallStep():
                yield from self._make_call(step)
            case _:
                return

    def _make_call(self, step: CallStep) -> Iterator[Thinking | ToolCall]:
        index = self._next_index("calls")
        signature_block = self._provider.make_call_signature(self.context, index)
        if signature_block is not None:
            yield signature_block
        origin = self._provider.call_origin(self.context, index, step.name, step.id)
        call_id = canonical_tool_id(
            provider=origin.provider,
            raw_id=origin.raw_id,
            tool_name=step.name,
            turn_key=self._provider.reply_id(self.context.ids),
            call_index=index,
        )
        arguments: Any = dict[str, Any]() if step.arguments is UNSET else step.arguments
        if any(tool.name == step.name and tool.kind == "custom" for tool in self.context.request.tools):
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            yield ToolCall(step.name, step.text or text, call_id, kind="custom", origin=origin)
        elif step.text is not None and not self._object_arguments:
            yield ToolCall(step.name, None, call_id, arguments_text=step.text, origin=origin)
        else:
            yield ToolCall(step.name, arguments, call_id, origin=origin)

    def _next_index(self, kind: str) -> int:
        index = self._counts[kind]
        self._counts[kind] = index + 1
        return index


def _is_complete(block: Block) -> bool:
    """True if the block before a cut is sent in full: a call with complete arguments."""
    return isinstance(block, ToolCall) and block.arguments_text is None


def _count_tokens(blocks: Sequence[Block]) -> int:
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    calls_text = "".join(
        f"{call.name}{call.arguments_text or call.arguments}" for call in blocks if isinstance(call, ToolCall)
    )
    return estimate_tokens(text + calls_text)


def _split_deltas(events: Sequence[Event]) -> Iterator[Event]:
    """Splits text deltas into words and argument deltas into short chunks."""
    for event in events:
        match event:
            case TextDelta() | ThinkingDelta():
                yield from (type(event)(event.index, piece) for piece in _WORD_CHUNK.findall(event.text))
            case InputDelta():
                text = event.text
                yield from (
                    InputDelta(event.index, text[start : start + _ARGUMENT_CHUNK])
                    for start in range(0, len(text), _ARGUMENT_CHUNK)
                )
            case _:
                yield event

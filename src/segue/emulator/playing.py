"""A turn of the model, told as its API tells it: blocks with ids and seals, and the pauses and breaks between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id
from segue.canonical.request import Finish, Reply, Usage
from segue.emulator.memory import tokens_of
from segue.emulator.providers.base import Provider, Scene
from segue.emulator.turns import Call, Cut, End, Say, Step, Think, Trouble, Turn, Wait
from segue.wire.events import (
    Event,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    events_of_block,
)

__all__ = ["Beat", "Performance"]

Beat: TypeAlias = Event | Wait | Trouble | Cut

_WORDS = re.compile(r"\s*\S+\s?|\s+")
_PIECE = 12
_FIRST = 1_700_000_000
_PLAIN = "This needs little thought."


class Performance:
    """One reply: the blocks of a turn, up to where it breaks off. `read` and `cached` tokens were in the prompt."""

    def __init__(self, provider: Provider, scene: Scene, turn: Turn, *, number: int, read: int, cached: int) -> None:
        thinks = provider.thinks(scene)
        if thinks and provider.always_thinks and not any(isinstance(step, Think) for step in turn):
            turn = (Think(_PLAIN), *turn)
        self.thought = [step.text for step in turn if isinstance(step, Think)] if thinks else []
        self.scene = replace(scene, thoughts=len(self.thought))
        self.turn = turn
        self._provider = provider
        self._read = read
        self._cached = cached
        self._count = {"calls": 0, "thoughts": 0}
        self._parts: list[tuple[Step, int]] = []
        blocks: list[Block] = []
        for step in turn:
            told = list(self._told(step))
            self._parts.append((step, len(told)))
            blocks += told
            if isinstance(step, Trouble | Cut):
                break
        reply_id = provider.reply_id(scene.names)
        usage, finish = self._usage(blocks), self._finish(blocks)
        # There is no clock: replies are a second apart.
        plain = Reply(tuple(blocks), finish, usage, reply_id, scene.model, created=_FIRST + number)
        self.reply = provider.dressed(self.scene, plain)
        """All of it at once."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.calls

    @property
    def breaks_off(self) -> bool:
        return isinstance(self._parts[-1][0], Trouble | Cut) if self._parts else False

    def beats(self) -> Iterator[Beat]:
        """All of it piece by piece. What follows a break is never told."""
        reply = self.reply
        yield Opened(reply.id, reply.model, reply.created, reply.native)
        index = 0
        for step, count in self._parts:
            if isinstance(step, Wait | Trouble | Cut):
                yield step
            for place in range(index, index + count):
                for event in _in_pieces(events_of_block(place, reply.blocks[place])):
                    yield Start(place, self._provider.begun(event.block)) if isinstance(event, Start) else event
            index += count
        if not self.breaks_off:
            yield UsageTold(reply.usage or Usage())
            yield Finished(reply.finish)

    def _finish(self, blocks: Sequence[Block]) -> Finish:
        for step in self.turn:
            if isinstance(step, End):
                return step.finish
        return "tool_calls" if any(isinstance(block, ToolCall) for block in blocks) else "stop"

    def _usage(self, blocks: Sequence[Block]) -> Usage:
        thought = sum(map(tokens_of, self.thought))
        return Usage(self._read, thought + _weight(blocks), cache_read=self._cached, reasoning=thought)

    # ------------------------------------------------------------------------------------------------------ the blocks

    def _told(self, step: Step) -> Iterator[Block]:
        match step:
            case Say():
                yield Text(step.text)
            case Think() if self.thought:
                yield self._provider.thought(self.scene, self._counted("thoughts"), step.text)
            case Call():
                yield from self._called(step)
            case _:
                return

    def _called(self, step: Call) -> Iterator[Thinking | ToolCall]:
        index = self._counted("calls")
        signed = self._provider.signs(self.scene, index)
        if signed is not None:
            yield signed
        origin = self._provider.call(self.scene, index, step.name, step.id)
        call_id = canonical_tool_id(
            provider=origin.provider,
            raw_id=origin.raw_id,
            tool_name=step.name,
            turn_key=self._provider.reply_id(self.scene.names),
            call_index=index,
        )
        arguments: Any = dict[str, Any]() if step.arguments is UNSET else step.arguments
        if any(tool.name == step.name and tool.kind == "custom" for tool in self.scene.request.tools):
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            yield ToolCall(step.name, step.text or text, call_id, kind="custom", origin=origin)
        elif step.text is not None:
            yield ToolCall(step.name, None, call_id, arguments_text=step.text, origin=origin)
        else:
            yield ToolCall(step.name, arguments, call_id, origin=origin)

    def _counted(self, what: str) -> int:
        index = self._count[what]
        self._count[what] = index + 1
        return index


def _weight(blocks: Sequence[Block]) -> int:
    said = "".join(block.text for block in blocks if isinstance(block, Text))
    called = "".join(
        f"{call.name}{call.arguments_text or call.arguments}" for call in blocks if isinstance(call, ToolCall)
    )
    return tokens_of(said + called)


def _in_pieces(events: Sequence[Event]) -> Iterator[Event]:
    """Words one at a time, arguments a few characters at a time, as models do."""
    for event in events:
        match event:
            case TextDelta() | ThinkingDelta():
                yield from (type(event)(event.index, piece) for piece in _WORDS.findall(event.text))
            case InputDelta():
                text = event.text
                yield from (InputDelta(event.index, text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))
            case _:
                yield event

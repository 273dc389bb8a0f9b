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
from segue.emulator.memory import tokens_of
from segue.emulator.providers.base import Provider, Scene
from segue.emulator.turns import Call, Cut, End, Say, Step, Think, Trouble, Turn, Wait
from segue.wire.events import End as BlockEnd
from segue.wire.events import (
    Event,
    Finished,
    InputDelta,
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
    """One reply: the blocks of its steps, up to an error or cut.

    `object_arguments`: arguments are sent as an object, and invalid ones as an empty object.
    """

    def __init__(
        self, provider: Provider, context: Scene, turn: Turn, *, number: int, read: int, cached: int, objects: bool
    ) -> None:
        thinks = provider.thinks(context)
        if thinks and provider.always_thinks and not any(isinstance(step, Think) for step in turn):
            turn = (Think(_PLAIN), *turn)
        self.thought = [step.text for step in turn if isinstance(step, Think)] if thinks else []
        self.scene = replace(context, thoughts=len(self.thought))
        self.turn = turn
        self._provider = provider
        self._read = read
        self._cached = cached
        self._objects = objects
        self._count = {"calls": 0, "thoughts": 0}
        self._parts: list[tuple[Step, int]] = []
        blocks: list[Block] = []
        for step in turn:
            made = list(self._told(step))
            self._parts.append((step, len(made)))
            blocks += made
            if isinstance(step, Trouble | Cut):
                break
        reply_id = provider.reply_id(context.names)
        usage, end = self._usage(blocks), self._end(blocks)
        # There is no clock: replies are a second apart.
        bare = Reply(
            tuple(blocks),
            end.finish,
            usage,
            reply_id,
            context.model,
            stop_sequence=end.sequence,
            created=_FIRST + number,
        )
        self.reply = provider.dressed(self.scene, bare)
        """The whole reply."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.calls

    @property
    def breaks_off(self) -> Trouble | Cut | None:
        """The error or cut that ends the reply, if any."""
        last = self._parts[-1][0] if self._parts else None
        return last if isinstance(last, Trouble | Cut) else None

    def beats(self) -> Iterator[Beat]:
        """Yields the stream events and steps of the reply, up to an error or cut."""
        reply = self.reply
        yield self._provider.opened(reply)
        index = 0
        cut = len(reply.blocks) - 1 if isinstance(self.breaks_off, Cut) else None
        for step, count in self._parts:
            if isinstance(step, Wait | Trouble | Cut):
                yield step
            for place in range(index, index + count):
                yield from self._block(place, ends=place != cut or _is_whole(reply.blocks[place]))
            index += count
        if not self.breaks_off:
            yield UsageTold(reply.usage or Usage())
            yield Finished(reply.finish, stop_sequence=reply.stop_sequence)

    def _block(self, place: int, *, ends: bool) -> Iterator[Event]:
        for event in _in_pieces(events_of_block(place, self.reply.blocks[place])):
            if isinstance(event, Start):
                yield Start(place, self._provider.begun(event.block))
            elif ends or not isinstance(event, BlockEnd):
                yield event

    def _end(self, blocks: Sequence[Block]) -> End:
        for step in self.turn:
            if isinstance(step, End):
                return step
        return End("tool_calls" if any(isinstance(block, ToolCall) for block in blocks) else "stop")

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
        elif step.text is not None and not self._objects:
            yield ToolCall(step.name, None, call_id, arguments_text=step.text, origin=origin)
        else:
            yield ToolCall(step.name, arguments, call_id, origin=origin)

    def _counted(self, what: str) -> int:
        index = self._count[what]
        self._count[what] = index + 1
        return index


def _is_whole(block: Block) -> bool:
    """True if a block before a cut was complete: only a call with complete arguments."""
    return isinstance(block, ToolCall) and block.arguments_text is None


def _weight(blocks: Sequence[Block]) -> int:
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    called = "".join(
        f"{call.name}{call.arguments_text or call.arguments}" for call in blocks if isinstance(call, ToolCall)
    )
    return tokens_of(text + called)


def _in_pieces(events: Sequence[Event]) -> Iterator[Event]:
    """Splits text deltas into words and argument deltas into short chunks."""
    for event in events:
        match event:
            case TextDelta() | ThinkingDelta():
                yield from (type(event)(event.index, piece) for piece in _WORDS.findall(event.text))
            case InputDelta():
                text = event.text
                yield from (InputDelta(event.index, text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))
            case _:
                yield event

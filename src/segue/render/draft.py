"""What the passes hand to each other: a transcript in the making, with the rules it has to meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Options, Reasoning, Request, Tool
from segue.render.demands import Demands, Policy
from segue.render.report import Report

__all__ = ["Draft", "is_client_call", "is_client_response", "regrouped"]


class Draft(Struct, frozen=True):
    """Passes return a draft; where nothing had to change they return the one they got."""

    request: Request
    demands: Demands
    policy: Policy
    report: Report
    model: str | None
    system: tuple[Text, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    options: Options

    def at_home(self, value: Message | Block) -> bool:
        """Whether this came from the very API it goes to."""
        return value.native is not None and value.native.api == self.demands.api

    @property
    def home(self) -> bool:
        return self.request.native is not None and self.request.native.api == self.demands.api

    @property
    def reasoning_on(self) -> bool:
        """Whether the request switches reasoning on."""
        asked = self.options.reasoning
        if asked is None or asked.enabled is False or asked.effort == "none":
            return False
        return asked != Reasoning()

    def with_messages(self, messages: Iterable[Message]) -> Draft:
        """The draft with these messages; itself if they are the ones it has."""
        made = tuple(messages)
        if len(made) == len(self.messages) and all(a is b for a, b in zip(made, self.messages, strict=True)):
            return self
        return msgspec.structs.replace(self, messages=made)

    def with_options(self, **changes: object) -> Draft:
        return msgspec.structs.replace(self, options=msgspec.structs.replace(self.options, **changes))

    def map_blocks(self, change: Callable[[Message, Block], Iterable[Block]]) -> Draft:
        """Each block replaced by what `change` makes of it; untouched messages stay the same objects."""
        return self.with_messages(_mapped(message, change) for message in self.messages)


def _mapped(message: Message, change: Callable[[Message, Block], Iterable[Block]]) -> Message:
    blocks = tuple(made for block in message.blocks for made in change(message, block))
    if len(blocks) == len(message.blocks) and all(a is b for a, b in zip(blocks, message.blocks, strict=True)):
        return message
    return message.holding(blocks)


def is_client_call(block: Block) -> bool:
    """A call that the client has to answer."""
    return isinstance(block, ToolCall) and block.kind != "hosted"


def is_client_response(block: Block) -> bool:
    return isinstance(block, ToolResponse) and not block.hosted


def regrouped(message: Message, belongs: Callable[[Block], str]) -> list[Message]:
    """The message cut into runs of blocks that belong to the same speaker; itself where there is one run only."""
    runs: list[tuple[str, list[Block]]] = []
    for block in message.blocks:
        speaker = belongs(block)
        if runs and runs[-1][0] == speaker:
            runs[-1][1].append(block)
        else:
            runs.append((speaker, [block]))
    if len(runs) <= 1 and (not runs or runs[0][0] == message.speaker):
        return [message]
    return [
        msgspec.structs.replace(message.holding(tuple(blocks)), speaker=speaker, native=None)
        for speaker, blocks in runs
    ]


def thinks(message: Message) -> bool:
    return any(isinstance(block, Thinking) for block in message.blocks)

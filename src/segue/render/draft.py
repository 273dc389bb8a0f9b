"""The value that passes transform: an unfinished transcript with its constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import is_
from typing import TypeGuard

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.request import Options, Reasoning, Request, Tool
from segue.render.demands import Demands, Policy
from segue.render.report import Report

__all__ = [
    "Draft",
    "client_calls",
    "client_responses",
    "loose_ids",
    "regrouped",
    "runs",
    "said_in_reply",
    "same_objects",
    "thinks",
]


class Draft(Struct, frozen=True):
    """Passes return a draft; where nothing changes they return the same object."""

    request: Request
    demands: Demands
    policy: Policy
    report: Report
    model: str | None
    system: tuple[Text, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    options: Options
    loose: frozenset[str] = frozenset()
    """Ids of calls that need no pairing: see `Constraints.unpaired_without_id`."""
    spell: Callable[[str], str] = str
    """Maps a tool name to the target's."""

    def at_home(self, value: Message | Block) -> bool:
        """Whether this came from the target's API."""
        return value.native is not None and value.native.api == self.demands.api

    def goes_back(self, block: Block) -> bool:
        """Whether this came from the target's API and is unchanged."""
        return self.at_home(block) and block.native is not None and block.native.intact

    def pairs_call(self, block: Block) -> TypeGuard[ToolCall]:
        """Whether this is a call that the client has to answer."""
        return isinstance(block, ToolCall) and block.kind != "hosted" and block.id not in self.loose

    def pairs_result(self, block: Block) -> TypeGuard[ToolResponse]:
        """Whether this is the result of such a call, also if the call is missing."""
        return isinstance(block, ToolResponse) and not block.hosted and block.call_id not in self.loose

    def tool_name(self, response: ToolResponse) -> str:
        """Return the target's name of the tool for use in text."""
        return self.spell(response.name) if response.name else "a tool"

    @property
    def home(self) -> bool:
        return self.request.native is not None and self.request.native.api == self.demands.api

    @property
    def reasoning_on(self) -> bool:
        """Whether the request turns reasoning on. For a model that can't reason only its own body counts."""
        if not self.demands.reasons and not (self.home and self.model == self.request.model):
            return False
        settings = self.options.reasoning
        if settings is None or settings.enabled is False or settings.effort == "none":
            return False
        return settings != Reasoning()

    @property
    def reasons(self) -> bool:
        """Whether the model will reason: by request, or by default where that is not or can't be disabled."""
        unset = self.options.reasoning is None or self.options.reasoning == Reasoning()
        is_default = unset or not self.demands.reasoning_switch
        return self.reasoning_on or (self.demands.reasoning_by_default and is_default)

    def with_messages(self, messages: Iterable[Message]) -> Draft:
        """Return the draft with these messages; the same object if they are identical."""
        made = tuple(messages)
        return self if same_objects(made, self.messages) else msgspec.structs.replace(self, messages=made)

    def with_options(self, **changes: object) -> Draft:
        return msgspec.structs.replace(self, options=msgspec.structs.replace(self.options, **changes))

    def map_blocks(self, change: Callable[[Message, Block], Iterable[Block]]) -> Draft:
        """Replace each block by the result of `change`; unchanged messages stay the same objects."""
        return self.with_messages(_mapped(message, change) for message in self.messages)


def _mapped(message: Message, change: Callable[[Message, Block], Iterable[Block]]) -> Message:
    blocks = tuple(made for block in message.blocks for made in change(message, block))
    return message if same_objects(blocks, message.blocks) else message.holding(blocks)


def same_objects(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def loose_ids(draft: Draft) -> frozenset[str]:
    """Return same-API calls, and results without a call, of types without an id where the target does not pair them."""
    if not draft.demands.loose_without_id:
        return frozenset()
    blocks = [block for message in draft.messages for block in message.blocks]
    calls = {block.id: block for block in blocks if isinstance(block, ToolCall)}
    results = {
        block.call_id for block in blocks if isinstance(block, ToolResponse) and _without_id(draft, block)
    } - calls.keys()
    return frozenset({call_id for call_id, call in calls.items() if _without_id(draft, call)} | results)


def _without_id(draft: Draft, block: ToolCall | ToolResponse) -> bool:
    return block.origin.identity == "absent" and draft.at_home(block)


def client_calls(draft: Draft, message: Message) -> list[ToolCall]:
    """The calls of a message that the client has to answer."""
    return [block for block in message.blocks if isinstance(block, ToolCall) and draft.pairs_call(block)]


def client_responses(draft: Draft) -> list[ToolResponse]:
    """All results of such calls."""
    return [
        block
        for message in draft.messages
        for block in message.blocks
        if isinstance(block, ToolResponse) and draft.pairs_result(block)
    ]


def said_in_reply(block: Block) -> str:
    """Return the speaker of a block in a model reply; hosted results belong to the model."""
    return "tool" if isinstance(block, ToolResponse) and not block.hosted else "ai"


def regrouped(message: Message, belongs: Callable[[Block], str]) -> list[Message]:
    """Split the message into runs of blocks of one speaker; returned unchanged where there is one run only."""
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


def runs(messages: Iterable[Message], together: Callable[[Message, Message], bool]) -> Iterator[list[Message]]:
    """Yield lists of neighbours for which `together` is True."""
    run: list[Message] = []
    for message in messages:
        if run and not together(run[-1], message):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


def thinks(message: Message) -> bool:
    return Thinking in map(type, message.blocks)

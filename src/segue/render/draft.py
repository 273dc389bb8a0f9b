"""`Draft`, the transcript in progress that passes transform, and functions that several passes use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeGuard

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.contents import Contents
from segue.canonical.json import are_identical
from segue.canonical.request import Options, Reasoning, Request, Tool
from segue.render.constraints import Constraints, Policy
from segue.render.prefix_digest import BoundPrefix
from segue.render.report import Report


class Draft(Struct, frozen=True):
    """A transcript in progress. A pass that changes nothing returns the same object."""

    request: Request
    constraints: Constraints
    policy: Policy
    report: Report
    model: str | None
    system: tuple[Text, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    options: Options
    unpaired_ids: frozenset[str] = frozenset()
    """Ids of calls that need no pairing: see `Constraints.unpaired_without_id`."""
    project_name: Callable[[str], str] = str
    """Maps a tool name to the target's."""
    earlier: BoundPrefix | None = None
    """The messages of earlier renders that the messages continue, where reasoning is bound to them."""
    has_stale_reasoning: bool = False
    """Whether reasoning was dropped because its prefix has changed."""

    def is_native(self, value: Message | Block) -> bool:
        """Return whether this came from the target's API."""
        return value.native is not None and value.native.api == self.constraints.api

    def is_intact(self, block: Block) -> bool:
        """Return whether this came from the target's API and is unchanged."""
        return self.is_native(block) and block.native is not None and block.native.intact

    def is_client_call(self, block: Block) -> TypeGuard[ToolCall]:
        """Return whether this is a call that the client has to answer."""
        return isinstance(block, ToolCall) and block.kind != "hosted" and block.id not in self.unpaired_ids

    def is_client_result(self, block: Block) -> TypeGuard[ToolResponse]:
        """Return whether this is a result that the client sends, also if its call is missing."""
        return isinstance(block, ToolResponse) and not block.hosted and block.call_id not in self.unpaired_ids

    def tool_name(self, response: ToolResponse) -> str:
        """Return the target's name of the tool for use in text."""
        return self.project_name(response.name) if response.name else "a tool"

    @property
    def is_same_api(self) -> bool:
        return self.request.native is not None and self.request.native.api == self.constraints.api

    @property
    def reasoning_on(self) -> bool:
        """Whether the request turns reasoning on; ignored for a model that can't reason, unless the body is its own."""
        if not self.constraints.can_reason and not (self.is_same_api and self.model == self.request.model):
            return False
        settings = self.options.reasoning
        return settings not in (None, Reasoning()) and not settings.is_off

    @property
    def will_reason(self) -> bool:
        """Whether the model will reason: by request, or by default where that is not or can't be disabled."""
        unset = self.options.reasoning is None or self.options.reasoning == Reasoning()
        is_default = unset or not self.constraints.can_disable_reasoning
        return self.reasoning_on or (self.constraints.reasoning_by_default and is_default)

    def with_messages(self, messages: Iterable[Message]) -> Draft:
        """Return the draft with these messages; the same object if they are identical."""
        changed = tuple(messages)
        return self if are_identical(changed, self.messages) else msgspec.structs.replace(self, messages=changed)

    def with_options(self, **changes: object) -> Draft:
        return msgspec.structs.replace(self, options=msgspec.structs.replace(self.options, **changes))

    def map_blocks(self, change: Callable[[Message, Block], Iterable[Block]]) -> Draft:
        """Replace each block by the result of `change`; unchanged messages stay the same objects."""
        return self.with_messages(_map_message_blocks(message, change) for message in self.messages)


def _map_message_blocks(message: Message, change: Callable[[Message, Block], Iterable[Block]]) -> Message:
    blocks = tuple(new for block in message.blocks for new in change(message, block))
    return message if are_identical(blocks, message.blocks) else message.with_blocks(blocks)


def find_unpaired_ids(draft: Draft, contents: Contents) -> frozenset[str]:
    """Return same-API calls, and results without a call, of types without an id where the target does not pair them.

    `contents` are those of the draft's messages.
    """
    if not draft.constraints.unpaired_without_id:
        return frozenset()
    results = {result.call_id for result in contents.results if _is_native_without_id(draft, result)}
    if results:
        results.difference_update([call.id for call in contents.calls])
    return frozenset({call.id for call in contents.calls if _is_native_without_id(draft, call)} | results)


def _is_native_without_id(draft: Draft, block: ToolCall | ToolResponse) -> bool:
    return block.origin.identity == "absent" and draft.is_native(block)


def client_calls(draft: Draft, message: Message) -> list[ToolCall]:
    """Return the calls of a message that the client has to answer."""
    unpaired = draft.unpaired_ids
    return [
        block
        for block in message.blocks
        if type(block) is ToolCall and block.kind != "hosted" and block.id not in unpaired
    ]


def client_responses(draft: Draft) -> list[ToolResponse]:
    """Return all results that the client sends."""
    unpaired = draft.unpaired_ids
    return [
        block
        for message in draft.messages
        for block in message.blocks
        if type(block) is ToolResponse and not block.hosted and block.call_id not in unpaired
    ]


def reply_speaker(block: Block) -> str:
    """Return the speaker of a block in a model reply; hosted results belong to the model."""
    return "tool" if isinstance(block, ToolResponse) and not block.hosted else "ai"


def split_by_speaker(message: Message, speaker_of: Callable[[Block], str]) -> list[Message]:
    """Split the message into runs of blocks of one speaker; returned unchanged if there is only one run."""
    runs: list[tuple[str, list[Block]]] = []
    for block in message.blocks:
        speaker = speaker_of(block)
        if runs and runs[-1][0] == speaker:
            runs[-1][1].append(block)
        else:
            runs.append((speaker, [block]))
    if len(runs) <= 1 and (not runs or runs[0][0] == message.speaker):
        return [message]
    return [
        msgspec.structs.replace(message.with_blocks(tuple(blocks)), speaker=speaker, native=None)
        for speaker, blocks in runs
    ]


def group_runs(messages: Iterable[Message], together: Callable[[Message, Message], bool]) -> Iterator[list[Message]]:
    """Yield lists of neighbours for which `together` is True."""
    run: list[Message] = []
    for message in messages:
        if run and not together(run[-1], message):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


def has_reasoning(message: Message) -> bool:
    return Thinking in map(type, message.blocks)

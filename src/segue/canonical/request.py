"""The canonical `Request` and `Reply`, with tools, options and usage."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add, sub
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Message, Native, Text, Thinking, ToolCall

Finish = Literal["stop", "tool_calls", "length", "filter", "pause", "error"]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Tool(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A declared tool. `parameters` is JSON Schema; a `custom` tool takes free text, limited by `grammar` if given.

    `hosted` tools are run by the provider and described only by their native declaration.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    kind: Literal["function", "custom", "hosted"] = "function"
    strict: bool | None = None
    grammar: Mapping[str, Any] | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class ToolChoice(Struct, frozen=True, gc=False):
    """`auto`, `none`, `required` (any tool) or `tool` (the one named); limited to the `allowed` tools where given."""

    mode: Literal["auto", "none", "required", "tool"]
    name: str | None = None
    allowed: tuple[str, ...] | None = None


class Reasoning(Struct, frozen=True, gc=False):
    """Reasoning settings: on or off (`enabled`), an `effort`, a token `budget`, or `adaptive` (the model decides).

    `visible` asks for the text of the reasoning.
    """

    enabled: bool | None = None
    effort: Effort | None = None
    budget: int | None = None
    adaptive: bool = False
    visible: bool = False

    @property
    def is_off(self) -> bool:
        """Whether reasoning is disabled, by `enabled` or by effort."""
        return self.enabled is False or self.effort == "none"


class ResponseFormat(Struct, frozen=True, gc=False):
    """`text`, any JSON object, or JSON by a schema."""

    kind: Literal["text", "json", "schema"]
    schema: Mapping[str, Any] | None = None
    name: str | None = None
    strict: bool | None = None


class Options(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """The options of a request. None means not given."""

    max_tokens: int | None = None
    temperature: float | int | None = None
    top_p: float | int | None = None
    top_k: int | None = None
    stop: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    parallel: bool | None = None
    reasoning: Reasoning | None = None
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    seed: int | None = None
    presence_penalty: float | int | None = None
    frequency_penalty: float | int | None = None
    user: str | None = None
    vendor_options: Mapping[str, Any] | None = None
    """Options that only the APIs of one vendor have, under that vendor's names."""

    def merge(self, other: Options | None) -> Options:
        """Return these options with those of `other` that are given in their place."""
        if other is None:
            return self
        given = {name: value for name in self.__struct_fields__ if (value := getattr(other, name)) is not None}
        if self.vendor_options and other.vendor_options:
            given["vendor_options"] = {**self.vendor_options, **other.vendor_options}
        return msgspec.structs.replace(self, **given)


class Request(Struct, frozen=True, gc=False):
    """A conversation and the options of its next reply. `system` is system text outside the list of messages.

    `continues` names the state that the provider holds and the body continues from (such as `previous_response_id`).
    `summarizes` asks for a compaction of the messages instead of a reply.
    """

    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    options: Options = Options()
    model: str | None = None
    continues: str | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None
    summarizes: bool = False


class Usage(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Token counts. `input` includes the cached tokens, `output` the reasoning tokens.

    `cache_write_1h` is the part of `cache_write` that is kept for an hour.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(sub, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class UsageSum(Struct):
    """The usage of several replies, and in dollars the cost of those whose price is known; None if there are none."""

    replies: int = 0
    usage: Usage = Usage()
    known_cost: float | None = None
    has_all_prices: bool = True

    def add(self, usage: Usage | None, cost: float | None) -> None:
        self.replies += 1
        self.usage += usage or Usage()
        self.has_all_prices = self.has_all_prices and cost is not None
        if cost is not None:
            self.known_cost = (self.known_cost or 0.0) + cost

    @property
    def cost(self) -> float | None:
        """The cost of all replies; None if the price of one is not known."""
        return self.known_cost if self.has_all_prices else None


class Reply(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One reply of a model. `created` is in seconds since 1970; `raw_finish` is the finish reason as the API sent it.

    `other_choices` counts further choices or candidates; `unknown_fields` names fields that segue does not model.
    """

    blocks: tuple[Block, ...]
    finish: Finish = "stop"
    usage: Usage | None = None
    id: str | None = None
    model: str | None = None
    stop_sequence: str | None = None
    created: int | None = None
    raw_finish: str | None = None
    other_choices: int = 0
    unknown_fields: tuple[str, ...] = ()
    native: Native | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """The text of all reasoning blocks."""
        return "".join(block.text for block in self.blocks if isinstance(block, Thinking))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

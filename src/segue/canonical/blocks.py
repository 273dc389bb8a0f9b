"""What a conversation is made of: blocks, and messages that hold them.

Values only: frozen, without row ids, clocks or behaviour that depends on anything outside. Whoever changes the content
of a block or message says so with `edited`, which keeps `native` from claiming more than it still knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "NO_ORIGIN",
    "Block",
    "Code",
    "Identity",
    "Media",
    "Message",
    "Native",
    "Opaque",
    "Origin",
    "Outcome",
    "Silence",
    "Speaker",
    "State",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResponse",
    "calls_of",
    "edited",
    "one_text",
    "responses_of",
    "state_of",
    "text_of",
]

JsonObject: TypeAlias = dict[str, Any]
Speaker = Literal["system", "human", "ai", "tool"]
Identity = Literal["natural", "nullable", "conflated", "synthetic", "absent"]
State = Literal["pending", "complete", "error", "cancelled", "interrupted"]
Outcome = Literal["cancelled", "interrupted"]
Silence = Literal["repeated", "missing", "listing", "declaring", "instruction"]


class Native(Struct, frozen=True, gc=False):
    """The original fragment and the API it came from.

    `intact` promises that the fragment still says all that the value says, so that at home it can go out as it is.
    Where it is not, only the fragment's unmodelled keys are of use.
    """

    api: str
    fragment: Mapping[str, Any]
    intact: bool = True


class Origin(Struct, frozen=True, gc=False):
    """Where a block came from, and how its identity was known.

    `raw_id` is the value that calls and results meet on, as it stood on the wire; `item_id` the item's own id where
    that is another field (`id` beside `call_id`), or a text that stood in the id's place and means none (`"null"`).
    Neither ever stands in for the other. `parent` is the raw id of the call that made this one.
    """

    provider: str
    model: str | None = None
    raw_id: str | None = None
    item_id: str | None = None
    identity: Identity = "natural"
    parent: str | None = None
    wire_type: str | None = None
    """The catalogue's name of the type, where the block was parsed as an item of its own; and what it is about."""
    family: str | None = None

    @property
    def is_approval(self) -> bool:
        """Whether this asks for leave to run a tool, or gives it: never a result."""
        return self.family is not None and self.family.endswith("approval")


NO_ORIGIN = Origin("local", identity="absent")


class Text(Struct, frozen=True, gc=False, tag="text"):
    text: str
    refusal: bool = False
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Thinking(Struct, frozen=True, gc=False, tag="thinking"):
    """Reasoning. `signature` and `sealed` (encrypted or redacted content) mean something to their maker only.

    `prefix` is the digest of everything the model had read when it wrote this, where that binds the block.
    """

    text: str = ""
    signature: str | None = None
    sealed: str | None = None
    origin: Origin = NO_ORIGIN
    prefix: str | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Media(Struct, frozen=True, gc=False, tag="media"):
    """A picture, sound, film or file: by base64 `data`, by `url`, or by a provider's `file_id`."""

    kind: Literal["image", "audio", "video", "document"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Code(Struct, frozen=True, gc=False, tag="code"):
    code: str
    language: str = ""
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Opaque(Struct, frozen=True, gc=False, tag="opaque"):
    """Something that segue has no model of. At home it goes back whole; abroad `text` is what can be said of it.

    Where it is `silent` nothing is to be said, for it is no part of the conversation: an item that was there before
    (`repeated`), a name for history that is not here (`missing`), a `listing` of tools, tools declared in passing
    (`declaring`), an `instruction` to the API.
    """

    kind: str
    native: Native | None = None
    text: str = ""
    silent: Silence | None = None
    extra: Mapping[str, Any] | None = None
    origin: Origin = NO_ORIGIN


class ToolResponse(Struct, frozen=True, gc=False, tag="tool_response"):
    """What came back for a call. `content` is None where no result is there (yet).

    `structured` holds the value where the wire carried JSON and not text. `outcome` is set where a call ended without
    running to its end; `synthetic` says why a response was made up.
    """

    call_id: str = ""
    name: str | None = None
    content: tuple[Block, ...] | None = None
    structured: Any = UNSET
    error: bool = False
    is_complete: bool | None = None
    outcome: Outcome | None = None
    synthetic: str | None = None
    hosted: bool = False
    origin: Origin = NO_ORIGIN
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call"):
    """A call. `arguments` is the parsed value; `arguments_text` the exact text where that was not valid JSON.

    Kinds: `function` (arguments by schema), `custom` (free text, held in `arguments`), `hosted` (run by the provider).
    `awaited` is False where the history may lawfully lack the result: the tool runs on by itself, or the provider
    holds what came back. A `broken` call was cut off while it was told: it is evidence, and never to be run.
    """

    name: str
    arguments: Any = {}
    id: str = ""
    arguments_text: str | None = None
    kind: Literal["function", "custom", "hosted"] = "function"
    origin: Origin = NO_ORIGIN
    native: Native | None = None
    extra: Mapping[str, Any] | None = None
    awaited: bool = True
    broken: bool = False

    @property
    def raw_id(self) -> str | None:
        """The id that the provider gave."""
        return self.origin.raw_id

    def respond(
        self,
        content: str | tuple[Block, ...] | None = None,
        *,
        structured: Any = UNSET,
        error: bool = False,
        outcome: Outcome | None = None,
        synthetic: str | None = None,
    ) -> ToolResponse:
        """The response of this call: made here, a pair can't be mismatched."""
        blocks = (Text(content),) if isinstance(content, str) else content
        return ToolResponse(
            call_id=self.id,
            name=self.name,
            content=blocks,
            structured=structured,
            error=error,
            is_complete=True,
            outcome=outcome,
            synthetic=synthetic,
            hosted=self.kind == "hosted",
            origin=self.origin,
        )


Block: TypeAlias = Text | Thinking | ToolCall | ToolResponse | Media | Code | Opaque


class Message(Struct, frozen=True, gc=False):
    """One message as its wire grouped it. `tool` messages may hold a human's words after the results."""

    speaker: Speaker
    blocks: tuple[Block, ...]
    turn_key: str | None = None
    name: str | None = None
    prefill: bool = False
    """Whether this is the marked beginning of an answer that is asked for."""
    native: Native | None = None
    extra: Mapping[str, Any] | None = None
    pinned: bool = False
    """Whether no compression may touch it."""

    def holding(self, blocks: tuple[Block, ...], *, speaker: Speaker | None = None) -> Message:
        """This message with other blocks; its fragment no longer speaks for them."""
        return msgspec.structs.replace(
            self, blocks=blocks, speaker=speaker or self.speaker, native=_no_longer_intact(self.native)
        )


def _no_longer_intact(native: Native | None) -> Native | None:
    return msgspec.structs.replace(native, intact=False) if native is not None and native.intact else native


AnyBlock = TypeVar("AnyBlock", Text, Thinking, ToolCall, ToolResponse, Media, Code, Opaque)

# Keys that stay true of a block whatever becomes of its content.
HARMLESS_KEYS = frozenset({"cache_control", "cachePoint"})


def edited(block: AnyBlock, **changes: Any) -> AnyBlock:
    """The block with other content. Of its fragment only harmless keys stay."""
    native = block.native
    if native is not None:
        kept = {key: value for key, value in native.fragment.items() if key in HARMLESS_KEYS}
        native = Native(native.api, kept, intact=False) if kept else None
    return msgspec.structs.replace(block, native=native, **changes)


def calls_of(message: Message) -> list[ToolCall]:
    return [block for block in message.blocks if isinstance(block, ToolCall)]


def responses_of(message: Message) -> list[ToolResponse]:
    return [block for block in message.blocks if isinstance(block, ToolResponse)]


def state_of(response: ToolResponse) -> State:
    """The lifecycle state that a response stands for, told from all its fields together."""
    if response.outcome is not None:
        return response.outcome
    if response.error:
        return "error"
    if response.is_complete is False:
        return "pending"
    there = response.content is not None or not isinstance(response.structured, UnsetType)
    return "complete" if there or response.is_complete else "pending"


def text_of(blocks: tuple[Block, ...] | None) -> str:
    """The words in blocks as one text."""
    return one_text(block.text for block in blocks or () if isinstance(block, Text))


def one_text(parts: Iterable[str]) -> str:
    """The parts of a text in one, each on a line of its own; empty ones are none."""
    text = ""
    written: list[str] = []
    for part in parts:
        if part:
            written += ["\n", part] if text and not text.endswith("\n") else [part]
            text = part
    return "".join(written)

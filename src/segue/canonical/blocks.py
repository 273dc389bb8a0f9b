"""Blocks, and the messages that hold them: frozen values without database ids or timestamps.

To change the content of a block use `edit_block`, and for a message `Message.with_blocks`: both also update `native`,
so that the original fragment is not sent in place of the changed content. msgspec rejects unknown fields when it
decodes these types: `codec` keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

JsonObject: TypeAlias = dict[str, Any]
Speaker = Literal["system", "human", "ai", "tool"]
Identity = Literal[
    "natural",  # the provider sent an id that pairs call and result
    "nullable",  # no id, in a field that may be null
    "conflated",  # the item's own id, in an API or a type without a separate call id
    "synthetic",  # no id, though the API requires one
    "absent",  # a type that has no id
]
State = Literal["pending", "complete", "error", "denied", "cancelled", "interrupted"]
Outcome = Literal["denied", "cancelled", "interrupted"]
OmitReason = Literal["repeated", "missing", "compaction", "listing", "declaring", "instruction", "notice"]
ShortenReason = Literal["cut", "removed", "repeated", "superseded", "stale"]


class Native(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True):
    """The original fragment and the API it came from.

    `intact` is True while the fragment and the value agree, so a same-API render can send the fragment unchanged.
    Otherwise only keys of the fragment that segue does not model are used.
    """

    api: str
    fragment: Mapping[str, Any]
    intact: bool = True


class Origin(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True):
    """Where a block came from, and which ids it had there.

    `raw_id` is the id that calls and results are paired by, as it was on the wire; `item_id` is the item's own id where
    that is a separate field (`id` next to `call_id`), or a string in the id field that means no id (`"null"`).
    `model` is recorded from replies only: the model name in a body may be an alias, or differ from its replies'.
    `parent` is the raw id of the call that made this one.
    """

    provider: str
    model: str | None = None
    raw_id: str | None = None
    item_id: str | None = None
    identity: Identity = "natural"
    parent: str | None = None
    wire_type: str | None = None
    """The type's name in the item catalog (`segue.wire.catalog`), where the block was parsed by `parse_item`."""
    family: str | None = None
    """The catalog's family of that type, such as `mcp-approval`."""

    @property
    def is_approval(self) -> bool:
        """Whether this requests or answers an approval to run a tool; an approval is never a tool result."""
        return self.family is not None and self.family.endswith("approval")


UNKNOWN_PROVIDER = "unknown"
"""The provider of reasoning in an API whose own provider has none."""
NO_ORIGIN = Origin("local", identity="absent")


class Text(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="text"):
    text: str
    refusal: bool = False
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Thinking(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="thinking"):
    """Reasoning. Only the provider that created it can use `signature` and `encrypted` (encrypted or redacted content).

    `prefix` is the digest of everything before this block in the prompt, where the block is bound to its prefix.
    """

    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    origin: Origin = NO_ORIGIN
    prefix: str | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Media(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="media"):
    """An image, audio, video or file, given as base64 `data`, as a `url`, or as a provider's `file_id`."""

    kind: Literal["image", "audio", "video", "document"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Code(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="code"):
    code: str
    language: str = ""
    native: Native | None = None
    extra: Mapping[str, Any] | None = None


class Opaque(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="opaque"):
    """Content that segue does not model. Same-API it is rendered whole; cross-API only its `text` is rendered.

    `omit_reason` is set where it is no part of the conversation and is omitted cross-API: a repeated item
    (`repeated`), a reference to history outside the body (`missing`), a `compaction`, which stands for the history
    before it, a `listing` of tools, a declaration of tools (`declaring`), an `instruction` to the API, a `notice` of
    the provider about the reply. `text` of a compaction is its summary, if that can be read; its `extra` may have
    `size`, the characters that only the provider can read, `messages`, how many before it are those it stands for, and
    `replaces`, if it is sent in their place, not behind them.
    """

    kind: str
    native: Native | None = None
    text: str = ""
    omit_reason: OmitReason | None = None
    extra: Mapping[str, Any] | None = None
    origin: Origin = NO_ORIGIN


class Shortening(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True):
    """How a compression shortened a result.

    `call_id` is set where a note refers to a later result that makes this one redundant: the call of that result.
    `path` is the file that a stale result is about.
    """

    reason: ShortenReason
    call_id: str = ""
    path: str = ""


class ToolResponse(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="tool_response"
):
    """The result of a tool call. `content` is None if there is no result (yet).

    `structured` is the value where the API has JSON and not text. `outcome` is set where the call did not finish;
    `synthetic` is the reason why segue inserted this result; `shortened` is set where a compression has changed it.
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
    shortened: Shortening | None = None


class ToolCall(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True, tag="tool_call"):
    """A tool call. `arguments` is the parsed value; `arguments_text` the exact text where that is not valid JSON.

    Kinds: `function` (arguments by schema), `custom` (free text, held in `arguments`), `hosted` (run by the provider).
    `awaited` is False if a history without the result is valid: the tool runs in the background, or the provider
    holds the result. A `broken` call was cut off mid-stream: it is kept in the history and never run.
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
        """The id that the provider sent."""
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
        """Return the result of this call, with the call's own id, name and origin."""
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


class Message(Struct, frozen=True, gc=False, forbid_unknown_fields=True, repr_omit_defaults=True):
    """One message, grouped as in its API. `tool` messages may hold the user's content after the results."""

    speaker: Speaker
    blocks: tuple[Block, ...]
    turn_key: str | None = None
    name: str | None = None
    prefill: bool = False
    """Whether this is a prefill: the beginning of the reply that the model continues."""
    native: Native | None = None
    extra: Mapping[str, Any] | None = None
    pinned: bool = False
    """Whether compression must leave it unchanged."""
    summarised: int = 0
    """How many messages this is the summary of; 0 if it is not a summary."""

    def with_blocks(self, blocks: tuple[Block, ...], *, speaker: Speaker | None = None) -> Message:
        """Return this message with other blocks; its `native` is no longer intact."""
        return msgspec.structs.replace(
            self, blocks=blocks, speaker=speaker or self.speaker, native=_mark_edited(self.native)
        )


def _mark_edited(native: Native | None) -> Native | None:
    return msgspec.structs.replace(native, intact=False) if native is not None and native.intact else native


AnyBlock = TypeVar("AnyBlock", Text, Thinking, ToolCall, ToolResponse, Media, Code, Opaque)

# Cache markers: keys of a fragment that stay valid when the content of the block changes.
CACHE_KEYS = frozenset({"cache_control", "cachePoint"})


def edit_block(block: AnyBlock, **changes: Any) -> AnyBlock:
    """Return the block with other content; only the cache markers of its fragment are kept."""
    native = block.native
    if native is not None:
        kept = {key: value for key, value in native.fragment.items() if key in CACHE_KEYS}
        native = Native(native.api, kept, intact=False) if kept else None
    return msgspec.structs.replace(block, native=native, **changes)


def calls_of(message: Message) -> list[ToolCall]:
    return [block for block in message.blocks if isinstance(block, ToolCall)]


def responses_of(message: Message) -> list[ToolResponse]:
    return [block for block in message.blocks if isinstance(block, ToolResponse)]


def origins_of(message: Message) -> list[Origin]:
    """Return the origins of the reasoning and calls of a message."""
    return [block.origin for block in message.blocks if isinstance(block, Thinking | ToolCall)]


def state_of(response: ToolResponse) -> State:
    """Return the lifecycle state of a result, inferred from all its fields together."""
    if response.outcome is not None:
        return response.outcome
    if response.error:
        return "error"
    if response.is_complete is False:
        return "pending"
    has_content = response.content is not None or not isinstance(response.structured, UnsetType)
    return "complete" if has_content or response.is_complete else "pending"


def first_text(blocks: Iterable[Block]) -> str:
    """Return the first text: of a user message the words, before the texts of its files and notes."""
    return next((block.text for block in blocks if isinstance(block, Text) and block.text.strip()), "")


def text_of(blocks: tuple[Block, ...] | None) -> str:
    """Return the text blocks joined into one string."""
    return join_texts(block.text for block in blocks or () if isinstance(block, Text))


def join_paragraphs(texts: Iterable[str]) -> str:
    """Join texts with an empty line; empty texts are skipped."""
    return "\n\n".join(filter(None, texts))


def join_texts(parts: Iterable[str]) -> str:
    """Join the parts of a text, each starting a new line; empty parts are skipped."""
    text = ""
    written: list[str] = []
    for part in parts:
        if part:
            written += ["\n", part] if text and not text.endswith("\n") else [part]
            text = part
    return "".join(written)

"""Texts that a stored message repeats: its `native` fragments hold the texts of its blocks again.

They are stored once. In the fragments they are null, and `Repeats` lists where they stand, so that a decoded message
gets them back; it then shares those values, like a message that was parsed from a body. A message is stored in two to
four times as few bytes.

Blocks are numbered: those of the message first, then those inside its tool results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from operator import is_
from typing import Any, TypeAlias, cast

from msgspec import Struct

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.errors import InputError

Path: TypeAlias = tuple[str | int, ...]

_MIN_LENGTH = 40
"""A shorter text is stored again."""
_MAX_DEPTH = 5
_KNOWN_TYPES = frozenset(
    str(kind.__struct_config__.tag) for kind in (Text, Thinking, ToolCall, ToolResponse, Media, Code, Opaque)
)
_MAIN_FIELDS = {"tool_call": "arguments", "code": "code", "media": "data"}
"""The field that `_main_value` returns, where it is not `text`."""
_MESSAGE = -1
"""The number that stands for the message's own fragment."""


class Repeats(Struct, frozen=True, gc=False, array_like=True):
    """Where the fragments of a stored message repeat values of its blocks.

    `has_inner` is whether blocks inside tool results are numbered too. `texts` are the number of a block, the number
    of the fragment that repeats its text, and the path in it; so are `signatures`. `fragments` are the number of a
    fragment, the path of a list in it, and the numbers of the blocks whose fragments are the items of that list;
    without a path, the whole fragment is that of the block.
    """

    has_inner: bool = False
    texts: tuple[tuple[int, int, Path], ...] = ()
    signatures: tuple[tuple[int, int, Path], ...] = ()
    fragments: tuple[tuple[int, Path, tuple[int, ...]], ...] = ()


# -------------------------------------------------------------------------------------------------------------- reading


def restore_repeats(message: Message, repeats: Repeats) -> None:
    """Put the repeated values back into the fragments of a message that was just decoded."""
    blocks: Sequence[Block] = _with_inner(message.blocks) if repeats.has_inner else message.blocks
    # The fragment of the message is the last one. Mappings that were decoded from JSON are dicts.
    fragments: list[Any] = [block.native and block.native.fragment for block in blocks]
    fragments.append(message.native and message.native.fragment)
    try:
        for number, holder, path in repeats.texts:
            _set_value(fragments[holder], path, _main_value(blocks[number]))
        for number, holder, path in repeats.signatures:
            block: Any = blocks[number]
            _set_value(fragments[holder], path, block.signature or block.encrypted)
        for holder, path, numbers in repeats.fragments:
            if path:
                _set_value(fragments[holder], path, [fragments[number] for number in numbers])
            else:
                fragments[holder].update(fragments[numbers[0]])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"the message does not hold what it repeats: {error!r}", path="repeats") from None


def _with_inner(blocks: Sequence[Block]) -> list[Block]:
    return [*blocks, *chain.from_iterable(block.content or () for block in blocks if isinstance(block, ToolResponse))]


def _main_value(block: Any) -> Any:
    """Return the value of a block that its fragment usually holds too: its text, data or arguments."""
    kind = cast("type[Block]", type(block))
    if kind is ToolResponse:
        return block.content[0].text
    if kind is ToolCall:
        return block.arguments
    if kind is Media:
        return block.data
    return block.code if kind is Code else block.text


def _set_value(fragment: Any, path: Path, value: Any) -> None:
    *outer, last = path
    for key in outer:
        fragment = fragment[key]
    fragment[last] = value


# -------------------------------------------------------------------------------------------------------------- writing


def remove_repeats(message: dict[str, Any]) -> tuple[dict[str, Any], Repeats | None]:
    """Return an encoded message without the values that its fragments repeat, and where they stood; None if nowhere.

    Arguments and fragments repeat only if they are the same object: equal ones may still differ as JSON.
    """
    own: list[dict[str, Any]] = message.get("blocks", [])
    inner = [block for outer in own for block in _inner_blocks(outer)]
    finder = _RepeatFinder([*own, *inner], _find_fragment(message))
    if not finder.changed:
        return message, None
    changed = [_with_fragment(block, finder.changed.get(number)) for number, block in enumerate((*own, *inner))]
    rest = iter(changed[len(own) :])
    blocks = [
        {**block, "content": list(islice(rest, count))} if (count := len(_inner_blocks(block))) else block
        for block in changed[: len(own)]
    ]
    repeats = Repeats(bool(inner), tuple(finder.texts), tuple(finder.signatures), tuple(finder.fragments))
    return {**_with_fragment(message, finder.changed.get(_MESSAGE)), "blocks": blocks}, repeats


def _inner_blocks(block: dict[str, Any]) -> list[dict[str, Any]]:
    return block.get("content") or [] if block["type"] == ToolResponse.__struct_config__.tag else []


def _find_fragment(value: dict[str, Any]) -> dict[str, Any] | None:
    native = value.get("native")
    return native["fragment"] if native is not None else None


def _with_fragment(value: dict[str, Any], fragment: dict[str, Any] | None) -> dict[str, Any]:
    return value if fragment is None else {**value, "native": {**value["native"], "fragment": fragment}}


class _RepeatFinder:
    """Finds repeated values in the fragments of a message; `changed` are the fragments without them, by number."""

    def __init__(self, blocks: Sequence[dict[str, Any]], own_fragment: dict[str, Any] | None) -> None:
        self.texts: list[tuple[int, int, Path]] = []
        self.signatures: list[tuple[int, int, Path]] = []
        self.fragments: list[tuple[int, Path, tuple[int, ...]]] = []
        self.changed: dict[int, dict[str, Any]] = {}
        self._text_numbers: dict[str, int] = {}
        self._signature_numbers: dict[str, int] = {}
        self._argument_numbers: dict[int, int] = {}
        self._fragment_numbers: dict[int, int] = {}
        found: dict[int, dict[str, Any]] = {}
        for number, block in enumerate(blocks):
            # A block of an unknown type is decoded to an `Opaque` whose fragment is the block itself.
            if block["type"] not in _KNOWN_TYPES:
                continue
            self._add_sources(number, block)
            if fragment := _find_fragment(block):
                found[number] = fragment
                self._fragment_numbers.setdefault(id(fragment), number)
        if own_fragment:
            found[_MESSAGE] = own_fragment
        for number, fragment in found.items():
            self._search_fragment(number, fragment)

    def _add_sources(self, number: int, block: dict[str, Any]) -> None:
        """Index the values of a block that fragments may repeat."""
        value: Any = block.get(_MAIN_FIELDS.get(block["type"], "text"))
        if block["type"] == ToolResponse.__struct_config__.tag:
            inner = _inner_blocks(block)
            value = inner[0]["text"] if inner and inner[0]["type"] == Text.__struct_config__.tag else None
        if isinstance(value, str):
            if len(value) >= _MIN_LENGTH:
                self._text_numbers.setdefault(value, number)
        elif isinstance(value, dict) and any(map(_is_long, cast("dict[str, Any]", value).values())):
            self._argument_numbers.setdefault(id(cast("object", value)), number)
        if block["type"] == Thinking.__struct_config__.tag:
            # The same value as in `restore_repeats`.
            signature: Any = block.get("signature") or block.get("encrypted")
            if _is_long(signature):
                self._signature_numbers.setdefault(signature, number)

    def _search_fragment(self, number: int, fragment: dict[str, Any]) -> None:
        same = self._fragment_numbers.get(id(fragment), number)
        if same != number:
            self.fragments.append((number, (), (same,)))
            self.changed[number] = {}
        elif (changed := self._search_value(number, fragment, ())) is not fragment:
            self.changed[number] = changed

    def _search_value(self, holder: int, value: Any, path: Path) -> Any:
        """Return the value with null in place of what it repeats; the same object if it repeats nothing."""
        if isinstance(value, str):
            return None if len(value) >= _MIN_LENGTH and self._is_repeated_text(holder, value, path) else value
        if len(path) > _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return self._search_fields(holder, cast("dict[str, Any]", value), path)
        return self._search_items(holder, cast("list[Any]", value), path) if isinstance(value, list) else value

    def _search_fields(self, holder: int, fields: dict[str, Any], path: Path) -> dict[str, Any] | None:
        if (number := self._argument_numbers.get(id(fields))) is not None:
            self.texts.append((number, holder, path))
            return None
        changed = {key: self._search_value(holder, item, (*path, key)) for key, item in fields.items()}
        return fields if all(map(is_, changed.values(), fields.values())) else changed

    def _search_items(self, holder: int, items: list[Any], path: Path) -> list[Any] | None:
        numbers = [number for item in items if (number := self._fragment_numbers.get(id(item))) is not None]
        if items and len(numbers) == len(items):
            self.fragments.append((holder, path, tuple(numbers)))
            return None
        changed = [self._search_value(holder, item, (*path, at)) for at, item in enumerate(items)]
        return items if all(map(is_, changed, items)) else changed

    def _is_repeated_text(self, holder: int, text: str, path: Path) -> bool:
        for numbers, places in ((self._text_numbers, self.texts), (self._signature_numbers, self.signatures)):
            if (number := numbers.get(text)) is not None:
                places.append((number, holder, path))
                return True
        return False


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) >= _MIN_LENGTH

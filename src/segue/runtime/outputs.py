"""What comes out of tools, made fit to be told: plain, writable as JSON, and no longer than its share of the budget.

A share is known before anything runs: what is kept the moment a tool ends is what is said later, so it can't depend on
who ends first nor on what others give. A batch's budget is split evenly among the calls that run, and what a call does
not use goes to nobody.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, cast

from msgspec import Struct

from segue.canonical.blocks import Block, Code, Media, Opaque, Text, one_text
from segue.canonical.jsontext import plain, write_text
from segue.canonical.texts import LEFT_OUT
from segue.contents import are_blocks, are_parts
from segue.errors import InputError
from segue.runtime.tooling import Result, ToolError

__all__ = ["Output", "cut", "error_words", "harmless_text", "one_line", "output_of", "share_of"]

Content: TypeAlias = "str | tuple[Block, ...] | dict[str, Any] | list[Any]"

_DEEPEST = 100
_LONGEST_ERROR = 2_000
_WIDEST_LINE = 200
_INTEGERS = range(-(2**63), 2**64)
# Half of a character, and the one that neither C nor PostgreSQL has a place for.
_UNFIT = re.compile("[\ud800-\udfff\0]")
_FIT = "\N{REPLACEMENT CHARACTER}"


class Output(Struct, frozen=True):
    """What the model is told. `text` is the words of it, `left_out` how many characters had no room."""

    content: Content
    text: str
    error: bool = False
    left_out: int = 0


def share_of(budget: int, running: int, refused: Iterable[str] = ()) -> int:
    """How many characters each of the calls that run may say, beside the words for those that do not."""
    return max(0, budget - sum(map(len, refused))) // max(1, running)


def cut(text: str, allowance: int) -> tuple[str, int]:
    """The head and the tail of a text, and between them how much was left out; and how much that is."""
    if len(text) <= allowance:
        return text, 0
    room = allowance - len(LEFT_OUT.format(count=len(text)))
    if room <= 0:
        return text[: max(0, allowance)], len(text) - max(0, allowance)
    head = room * 2 // 3
    left_out = len(text) - room
    return text[:head] + LEFT_OUT.format(count=left_out) + text[len(text) - (room - head) :], left_out


def harmless_text(text: str) -> str:
    """The text without what can't be written everywhere."""
    return _UNFIT.sub(_FIT, str.__str__(text))


def one_line(text: object) -> str:
    """The last line of a text, not too wide: for those who look on."""
    lines = [line for line in harmless_text(_as_text(text)).splitlines() if line.strip()]
    return lines[-1].strip()[:_WIDEST_LINE] if lines else ""


def error_words(error: BaseException) -> str:
    """An exception in words for the model: a tool's own, or type and text in one line."""
    text = harmless_text(_as_text(error))
    if isinstance(error, ToolError):
        return text if text.strip() else "the tool failed and did not say why"
    told = " ".join(text.split())[:_LONGEST_ERROR]
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def output_of(value: object, allowance: int) -> Output:
    """What a tool gave back, whatever it is, within so many characters."""
    error = isinstance(value, Result) and value.error
    given = value.content if isinstance(value, Result) else value
    if given is None:
        given = ""
    if isinstance(given, str | bytes | bytearray):
        text, left_out = cut(_decoded(given), allowance)
        return Output(text, text, error, left_out)
    if are_blocks(given):
        blocks = cast("Sequence[Block]", given) if isinstance(given, list | tuple) else (cast("Block", given),)
        return _blocks(blocks, allowance, error=error)
    made = _harmless(given, 0, ())
    text = made if isinstance(made, str) else write_text(made)
    shorter, left_out = cut(text, allowance)
    # A list that looks like content parts would be read as such.
    if left_out or not isinstance(made, dict | list) or are_parts(cast("object", made)):
        return Output(shorter, shorter, error, left_out)
    return Output(cast("dict[str, Any] | list[Any]", made), text, error)


def _blocks(blocks: Sequence[Block], allowance: int, *, error: bool) -> Output:
    """Only what a result may hold: no calls, no thoughts, nothing that claims to come from a provider."""
    made: list[Block] = []
    words: list[str] = []
    total = 0
    for block in blocks:
        if isinstance(block, Media):
            made.append(_media(block))
            words.append(f"[{block.kind}]")
            continue
        text, left_out = cut(harmless_text(_words(block)), allowance)
        allowance -= len(text)
        total += left_out
        words.append(text)
        made.append(Code(text, harmless_text(block.language)) if isinstance(block, Code) else Text(text))
    return Output(tuple(made), one_text(words), error, total)


def _words(block: Block) -> str:
    match block:
        case Text(text) | Opaque(text=text):
            return text
        case Code(code):
            return code
        case _:
            return "[something that is no result was left out]"


def _media(block: Media) -> Media:
    fields = {name: getattr(block, name) for name in ("kind", "mime", "data", "url", "file_id", "name")}
    return Media(**{name: harmless_text(text) for name, text in fields.items() if isinstance(text, str)})  # pyright: ignore[reportArgumentType]


def _decoded(given: str | bytes | bytearray) -> str:
    return harmless_text(given if isinstance(given, str) else bytes(given).decode(errors="replace"))


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - whatever a stranger's object does when it is asked for its name
        return f"a {type(value).__name__}"


def _harmless(value: object, depth: int, parents: tuple[int, ...]) -> Any:
    """The value as JSON has it. What JSON has no word for is told as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | bytes | bytearray):
        return _decoded(value)
    if isinstance(value, int):
        return int(value) if int(value) in _INTEGERS else _as_text(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth >= _DEEPEST or id(value) in parents:
        return "…"
    parents = (*parents, id(value))
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return {harmless_text(_as_text(key)): _harmless(item, depth + 1, parents) for key, item in fields.items()}
    if isinstance(value, Sequence | AbstractSet):
        return [_harmless(item, depth + 1, parents) for item in cast("Iterable[object]", value)]
    try:
        return _harmless(plain(value), depth + 1, parents)
    except InputError:
        return harmless_text(_as_text(value))

"""Test helpers that parse a text format: whole and in every split, without losing a character."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, cast

from hypothesis import strategies as st
from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import BrokenCall, FoundCall, Match, Opener, Region, RegionEnd, Segment
from segue.wire.text.scan import CallScanner, scan_text
from segue.wire.text.text_format import TextFormat

NamedArguments = tuple[str, Any]


def text_of(pieces: Iterable[Segment]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.raw_text for piece in pieces)


def scan_parts(parts: Iterable[str], form: TextFormat, declared: DeclaredTools | None = None) -> list[Segment]:
    """Scans a text in parts and joins adjacent text."""
    scanner = CallScanner(form, declared)
    pieces = [piece for part in parts for piece in scanner.feed(part)] + scanner.close()
    joined: list[Segment] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def read(text: str, form: TextFormat, declared: DeclaredTools | None = None) -> list[Segment]:
    """The segments of a text, which are the same in every split."""
    pieces = scan_text(text, form, declared)
    assert text_of(pieces) == text
    assert scan_parts(text, form, declared) == pieces
    for place in range(1, len(text)):
        assert scan_parts((text[:place], text[place:]), form, declared) == pieces, place
    return pieces


def calls(pieces: Iterable[Segment]) -> list[NamedArguments]:
    return [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)]


def lost(pieces: Iterable[Segment]) -> list[str]:
    return [piece.raw_text for piece in pieces if isinstance(piece, BrokenCall)]


def plain_text(pieces: Iterable[Segment]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


NASTY = [
    *("<|tool_call>", "<tool_call|>", '<|"|>', "<escape>", "<end_function_call>", "{", "}", "[", "]", ",", ":"),
    *(
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<｜DSML｜invoke name=",
        "</｜DSML｜parameter>",
    ),
    *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"),
    *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[/TOOL_RESULTS]", "```", "```json\n", "`", '"', "'", "\\", "\n", "\t"),
    *("<", ">", "&", "&quot;", "</s>", "null", "True", "None", "10", "é", "日本", "😀", " ", ""),
]
STRINGS = st.lists(st.sampled_from(NASTY) | st.text(max_size=3), max_size=5).map("".join)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(STRINGS, VALUES, max_size=3)
NAMES = st.sampled_from(["get", "get_weather", "mcp__a-b", "function", "call", "x1", "None"])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3)


def make_calls(named_arguments: Sequence[NamedArguments]) -> list[ToolCall]:
    return [ToolCall(name, arguments, id=f"call_{number}") for number, (name, arguments) in enumerate(named_arguments)]


def declared_for(named_arguments: Sequence[NamedArguments]) -> DeclaredTools:
    return DeclaredTools([Tool(name, parameters={"type": "object", "properties": {}}) for name, _ in named_arguments])


class _Counted:
    """A region that counts what it is fed and what it hands back."""

    def __init__(self, region: Region, count: Callable[[int], None]) -> None:
        self._region = region
        self._count = count

    def feed(self, text: str) -> RegionEnd | None:
        self._count(len(text))
        closed = self._region.feed(text)
        self._count(0 if closed is None else len(closed.rest))
        return closed

    def close(self) -> RegionEnd:
        return self._region.close()


def work(text: str, form: TextFormat, step: int | None = None) -> int:
    """The work for a text: Python calls made, and characters that pass in and out of regions."""
    total = 0

    def count(more: int) -> None:
        nonlocal total
        total += more

    def counted(opener: Opener) -> Opener:
        def match(text: str, place: int, at_line_start: bool, ended: bool) -> Match:
            found = opener.match(text, place, at_line_start, ended)
            if found == "no" or found == "perhaps":
                return found
            return lambda declared: cast("Region", _Counted(found(declared), count))

        return Opener(opener.first_chars, match, opener.second_chars)

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        if event in ("call", "c_call"):
            count(1)

    scanner = CallScanner(replace(form, openers=tuple(map(counted, form.openers))))
    steps = [text] if step is None else [text[start : start + step] for start in range(0, len(text), step)]
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        pieces = [piece for part in steps for piece in scanner.feed(part)] + scanner.close()
    finally:
        sys.setprofile(before)
    assert text_of(pieces) == text
    return total


def assert_linear(text: str, form: TextFormat) -> None:
    """Twice the text is no more than twice the work, and a little.

    Both are longer than the fixed lengths at which parsers give up.
    """
    for step in (None, 10):
        once, more = (work(text * (size // len(text) + 1), form, step) for size in (9_000, 18_000))
        assert more < 2.3 * once, (step, once, more)

"""MiniMax M3's tags, which `xml` reads (TPL-06)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.registry import detect_format
from segue.wire.text.scan import scan_text
from segue.wire.text.xml import XML
from tests.wire.text.parsing import calls, lost, plain_text, read, scan_parts, text_of, work

N = "]<]minimax[>["
SECTION, SECTION_END = f"{N}<tool_call>\n", f"{N}</tool_call>"
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}}
DECLARED = DeclaredTools(
    [
        Tool(
            "f",
            parameters={
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
                    "at": {"$ref": "#/$defs/point"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "$defs": {"point": POINT},
            },
        )
    ]
)


def tag(key: str, value: str) -> str:
    return f"{N}<{key}>{value}{N}</{key}>"


def invoke(*inside: str, name: str = "f") -> str:
    return f'{N}<invoke name="{name}">{"".join(inside)}{N}</invoke>\n'


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ("", {}),
        (tag("text", "10") + tag("count", "10"), {"text": "10", "count": 10}),
        (tag("text", ' <b>"</text> </invoke>\n'), {"text": ' <b>"</text> </invoke>\n'}),
        (tag("tags", tag("item", "1") + tag("item", "two")), {"tags": ["1", "two"]}),
        (tag("tags", ""), {"tags": []}),
        (tag("at", tag("x", "1.5") + tag("name", "2")), {"at": {"x": 1.5, "name": "2"}}),
        (tag("points", tag("item", tag("x", "1")) + tag("item", "")), {"points": [{"x": 1}, {}]}),
        (tag("who", tag("item", "1") + tag("item", "a")), {"who": [1, "a"]}),
        (tag("who", tag("item", "1") + tag("b", "true")), {"who": {"item": 1, "b": True}}),
    ],
)
def test_values(inside: str, arguments: object) -> None:
    text = f"So.{SECTION}{invoke(inside)}{SECTION_END} Yes."
    pieces = read(text, XML, DECLARED)
    assert calls(pieces) == [("f", arguments)]
    assert plain_text(pieces) == "So. Yes."


def test_several_calls() -> None:
    text = SECTION + invoke(tag("text", "a")) + invoke(tag("count", "2")) + SECTION_END
    pieces = read(text, XML, DECLARED)
    assert calls(pieces) == [("f", {"text": "a"}), ("f", {"count": 2})]
    assert not lost(pieces)
    form = detect_format(text)
    assert form is not None
    assert form.name == "xml"


@pytest.mark.parametrize(
    "broken",
    [
        f'{N}<invoke name="f">{N}<text>a',
        f'{N}<invoke name="f">{N}<text>a{N}</count>{N}</invoke>',
        f'{N}<invoke name="f">words{N}</invoke>',
        f"{N}<invoke name=f>{N}</invoke>",
        f'{N}<invoke name="">{N}</invoke>',
        f'{N}<invoke name="f">{N}<text>a{tag("x", "1")}{N}</text>{N}</invoke>',
        SECTION + "words",
        f'{N}<invoke name="f">' + f"{N}<a>" * 100 + f"{N}</a>" * 100 + f"{N}</invoke>",
    ],
)
def test_a_broken_call_stays_and_the_next_one_is_found(broken: str) -> None:
    pieces = scan_text(broken + invoke(tag("text", "a")), XML, DECLARED)
    assert calls(pieces) == [("f", {"text": "a"})]
    assert "".join(lost(pieces)).strip()
    assert text_of(pieces) == broken + invoke(tag("text", "a"))


@given(
    st.lists(
        st.sampled_from(
            [N, "<tool_call>", "</tool_call>", '<invoke name="f">', "</invoke>", "<a>", "</a>", "]<]", "x\n"]
        ),
        max_size=14,
    ).map("".join),
    st.integers(1, 9),
)
def test_no_character_is_lost(text: str, step: int) -> None:
    whole = scan_text(text, XML, DECLARED)
    assert text_of(whole) == text
    parts = [text[place : place + step] for place in range(0, len(text), step)]
    assert scan_parts(parts, XML, DECLARED) == whole


@pytest.mark.parametrize(
    "unit", [N, f"{N}<tool_call>", f'{N}<invoke name="f">', f'{N}<invoke name="f">{N}<a>', f"{N}<a>", "]<]"]
)
@pytest.mark.parametrize("step", [None, 10])
def test_the_work_grows_with_the_text(unit: str, step: int | None) -> None:
    head = f'{N}<invoke name="f">'
    once, more = (work(head + unit * (size // len(unit)), XML, step) for size in (5_000, 20_000))
    assert more < 5 * once

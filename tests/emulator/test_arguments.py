"""Arguments: taken from the prompt where possible, always valid for the schema, as checked by `jsonschema`."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.emulator.model.arguments import is_valid, make_arguments
from segue.emulator.model.pattern_text import make_text
from tests.budget import examples
from tests.emulator import schemas

STRING = {"type": "string"}
WHOLE = {"type": "integer"}


def takes(*optional: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object; all that is not named as optional is required."""
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed}


@pytest.mark.parametrize(
    ("words", "schema", "arguments"),
    [
        ("What is the weather in Lisbon?", takes(city=STRING), {"city": "Lisbon"}),
        ("How warm is it in Rio de Janeiro?", takes(place=STRING), {"place": "Rio de Janeiro"}),
        ("Read src/x.py, please.", takes(path=STRING), {"path": "src/x.py"}),
        ("Show me the README.md", takes(file_path=STRING), {"file_path": "README.md"}),
        (
            "List ~/notes/ recursively",
            takes("recursive", dir=STRING, recursive={"type": "boolean"}),
            {"dir": "~/notes/", "recursive": True},
        ),
        (
            "Write 'hello there' to notes.txt",
            takes(path=STRING, content=STRING),
            {"path": "notes.txt", "content": "hello there"},
        ),
        (
            "Book a flight from Paris to Rome for 2 passengers on 2026-03-05",
            takes(origin=STRING, destination=STRING, passengers=WHOLE, date={**STRING, "format": "date"}),
            {"origin": "Paris", "destination": "Rome", "passengers": 2, "date": "2026-03-05"},
        ),
        (
            "Convert 1,200.50 USD to EUR",
            takes(amount={"type": "number"}, **{"from": STRING, "to": STRING}),
            {"amount": 1200.5, "from": "USD", "to": "EUR"},
        ),
        (
            "Compare Lisbon, Oslo and New York",
            takes(cities={"type": "array", "items": STRING}),
            {"cities": ["Lisbon", "Oslo", "New York"]},
        ),
        ("Fetch https://example.com/a?b=1, then stop", takes(url=STRING), {"url": "https://example.com/a?b=1"}),
        ("Mail anna@example.org", takes(to={**STRING, "format": "email"}), {"to": "anna@example.org"}),
        ("Run `ls -la` now", takes(command=STRING), {"command": "ls -la"}),
        ("What is 2 + 3 * (4 - 1)?", takes(expression=STRING), {"expression": "2 + 3 * (4 - 1)"}),
        ("Search the docs for rate limits.", takes(query=STRING), {"query": "rate limits"}),
        ("Where is order A-1042?", takes(order_id=STRING), {"order_id": "A-1042"}),
        ("Roll 3 dice with 6 sides", takes(sides=WHOLE, dice=WHOLE), {"sides": 6, "dice": 3}),
        ("Meet at 14:05", takes(at={**STRING, "format": "time"}), {"at": "14:05:00Z"}),
        ("On 2026-03-05", takes(at={**STRING, "format": "date-time"}), {"at": "2026-03-05T00:00:00Z"}),
        ("Paint it dark red", takes(color={"enum": ["blue", "dark_red", "red"]}), {"color": "dark_red"}),
        ("Paint it", takes(color={"enum": ["blue", "red"], "default": "red"}), {"color": "red"}),
        ("hm", takes(city=STRING), {"city": "city"}),
        ("hm", takes(city={**STRING, "examples": ["Bergen"]}), {"city": "Bergen"}),
        ("hm", takes(user_id={**STRING, "pattern": "^usr_[a-f0-9]{4}$"}), {"user_id": "usr_aaaa"}),
        ("hm", {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "minimum": 5}}, "required": ["n"]}, {"n": 5}),
        ("hm", None, {}),
        ("hm", {}, {}),
        ("hm", {"type": "string"}, "text"),
    ],
)
def test_text_becomes_arguments(words: str, schema: Any, arguments: Any) -> None:
    assert make_arguments(schema, words) == arguments


WEATHER = takes(
    *("country", "unit", "days"), city=STRING, country=STRING, unit={"enum": ["celsius", "fahrenheit"]}, days=WHOLE
)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("Weather in Lisbon and Oslo", {"city": "Lisbon"}),
        ("Weather in Lisbon in celsius", {"city": "Lisbon", "unit": "celsius"}),
        ("The next 3 days in Lisbon", {"city": "Lisbon", "days": 3}),
        ("In Lisbon at 3 pm", {"city": "Lisbon"}),
    ],
)
def test_optional_argument_needs_a_mention(words: str, arguments: Any) -> None:
    assert make_arguments(WEATHER, words) == arguments


@pytest.mark.parametrize(
    ("words", "schema", "each"),
    [
        ("In Lisbon and Oslo?", takes(city=STRING), ["Lisbon", "Oslo", "Lisbon"]),
        ("In Lisbon, in Oslo and in Rome?", takes(city=STRING), ["Lisbon", "Oslo", "Rome", "Lisbon"]),
        ("Ask Maria about Oslo", takes(name=STRING), ["Maria", "Maria"]),
        ("Read src/a.py and b.md", takes(path=STRING), ["src/a.py", "b.md", "src/a.py"]),
        ("Roll 6 and 20", takes(sides=WHOLE), [6, 20, 6]),
    ],
)
def test_each_call_gets_its_own_of_several(words: str, schema: Any, each: list[Any]) -> None:
    made = [make_arguments(schema, words, nth=nth) for nth in range(len(each))]
    assert [next(iter(value.values())) for value in made] == each


def test_values_of_one_call_are_not_split() -> None:
    route = takes(origin=STRING, destination=STRING)
    made = [make_arguments(route, "Between Lisbon and Oslo", nth=nth) for nth in range(2)]
    assert made == [{"origin": "Lisbon", "destination": "Oslo"}] * 2


def test_a_schema_of_itself_comes_to_an_end() -> None:
    node = {**takes(name=STRING, child={"anyOf": [{"$ref": "#"}, {"type": "null"}]})}
    value, depth = make_arguments(node, "hm"), 0
    while value is not None:
        value, depth = value["child"], depth + 1
    assert 1 <= depth <= 5


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, takes(a={"$ref": "#"}), {"not": {}}, {"type": "array", "minItems": 10**6}]
)
def test_unsatisfiable_schema_gets_an_empty_object(schema: Any) -> None:
    assert make_arguments(schema, "hm") == {}


@pytest.mark.parametrize(
    "words", ["a" * 100_000, "a." * 50_000, "a-" * 50_000, "1 " * 50_000, "A " * 50_000, "é@" * 9_999]
)
def test_long_text_is_handled(words: str) -> None:
    assert is_valid(WEATHER, make_arguments(WEATHER, words))


@examples(3)
@given(schemas.tools(), schemas.SAMPLE_TEXTS, st.integers(0, 2))
def test_the_schema_takes_what_is_made(schema: Any, words: str, nth: int) -> None:
    made = make_arguments(schema, words, nth=nth)
    jsonschema.Draft202012Validator(schema).validate(made)
    assert made == make_arguments(schema, words, nth=nth)


def test_pattern_that_cannot_be_generated_changes_no_other_property() -> None:
    schema = takes(code={**STRING, "pattern": r"^(?=.*\d)(?=.*[A-Z])[^-]{8,}$"}, city=STRING)
    assert make_arguments(schema, "In Lisbon") == {"code": "code", "city": "Lisbon"}


@pytest.mark.parametrize("pattern", [r"\p{L}+", r"(a)\1", "(", "[", "a{2", r"\u00e9", "*"])
def test_a_pattern_that_is_not_simple_is_given_up(pattern: str) -> None:
    text = make_text(pattern)
    assert text is None or re.search(pattern, text)

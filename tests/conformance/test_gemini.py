"""Gemini only: its own parts pass, and every body gets a verdict."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue import conformance
from segue.conformance.gemini.fields import DATA_FIELDS, OTHER_ENDPOINT_FIELDS, to_camel
from segue.specs.types import load_types
from tests.bodies import Body
from tests.budget import examples
from tests.conformance import bodies_gemini as g
from tests.conformance import bodies_gemini_tools
from tests.each import for_each
from tests.work import count_work

FIELDS = {message: spec.members for message, spec in load_types("gemini").items()}


def test_special_fields_are_in_the_types() -> None:
    assert all(name in FIELDS[message] for message, name in OTHER_ENDPOINT_FIELDS)
    assert set(DATA_FIELDS) <= FIELDS["Part"].keys()


# Parts as the API and its documentation write them, each with a response where it needs one.
CALLS: list[tuple[Body, Body]] = [
    (
        {"functionCall": {"name": "set_thermostat", "args": {"room": "galley", "celsius": 19.5}}},
        {"functionResponse": {"name": "set_thermostat", "response": {"output": "ok"}}},
    ),
    (
        {"functionCall": {"id": "fc-77", "name": "set_thermostat", "args": {}}, "thoughtSignature": "c2lnMg=="},
        {
            "functionResponse": {
                "id": "fc-77",
                "name": "set_thermostat",
                "response": {"error": "sensor offline"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo=", "displayName": "panel"}}],
            }
        },
    ),
    (
        {
            "functionCall": {
                "id": "fc-78",
                "name": "log_entry",
                "partialArgs": [{"jsonPath": "$.text", "stringValue": "Wind fresh", "willContinue": True}],
                "willContinue": True,
            }
        },
        {"functionResponse": {"id": "fc-78", "name": "log_entry", "response": {}}},
    ),
    (
        {
            "functionCall": {
                "name": "click_at",
                "args": {"x": 371, "y": 470, "safety_decision": {"decision": "require_confirmation"}},
            }
        },
        {
            "functionResponse": {
                "name": "click_at",
                "response": {"url": "https://kelp.example", "safety_acknowledgement": "true"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}],
            }
        },
    ),
]
SERVER_SIDE: list[list[Body]] = [
    [g.CODE, g.RAN],
    [
        {"executableCode": {"id": "ec-5", "language": "PYTHON", "code": "open('a.csv').read()"}},
        {"codeExecutionResult": {"id": "ec-5", "outcome": "OUTCOME_FAILED", "output": "FileNotFoundError"}},
    ],
    [
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["kelp farming Norway"]}}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 3}}},
    ],
    [
        {
            "toolCall": {"id": "tc-1", "toolType": "URL_CONTEXT", "args": {"urls": ["https://kelp.example"]}},
            "thoughtSignature": "c2ln",
        },
        {"toolResponse": {"id": "tc-1", "toolType": "URL_CONTEXT", "response": {"status": "ok"}}},
    ],
]


@pytest.mark.parametrize(("call", "answer"), CALLS)
def test_documented_calls_pass(call: Body, answer: Body) -> None:
    for signed, model in ((call, g.COMPUTER), ({"thoughtSignature": g.SKIP, **call}, g.NEW)):
        body = g.body(g.model(g.TEXT, signed), g.user(answer))
        assert conformance.check_body(body, "gemini", model=model), model
        assert conformance.check_body(_snaked(body), "gemini", model=model), model


@pytest.mark.parametrize("parts", SERVER_SIDE)
def test_documented_server_side_parts_pass(parts: list[Body]) -> None:
    body = g.body(g.model(*parts, g.TEXT), g.Q)
    assert not conformance.check_body(body, "gemini", model=g.NEW).violations
    assert not conformance.check_body(_snaked(body), "gemini", model=g.NEW).violations


SNAKE = {to_camel(name): name for fields in FIELDS.values() for name in fields}


def _snaked(value: Any) -> Any:
    """The same body with the other spelling of every name that the API knows."""
    if isinstance(value, list):
        return [_snaked(entry) for entry in value]
    if isinstance(value, dict):
        return {SNAKE.get(key, key): _snaked(entry) for key, entry in value.items()}
    return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in _places(entry, (*path, key)))]


def _set(body: Body, path: tuple[Any, ...], new: object) -> Body:
    """The body with this value at this place; `...` takes the place away."""
    *way, last = path
    body = copy.deepcopy(body)
    at: Any = body
    for step in way:
        at = at[step]
    if new is ...:
        del at[last]
    else:
        at[last] = new
    return body


ODD: list[object] = [
    *(..., None, True, 0, -1.5, float("nan"), "", " ", "x", "ud\ud800", "OBJECT", [], [None], [[]], {}, {"": None}),
    *([{}], {"parts": [None]}, [True, "x", {"text": {}}], {"type": ["x"], "items": [], "properties": {"a": None}}),
]


def _bodies_by_place() -> dict[str, list[tuple[Body, tuple[Any, ...], str | None]]]:
    """The bodies with each kind of place, and where it is in them; the indices of lists do not distinguish places."""
    found: dict[str, list[tuple[Body, tuple[Any, ...], str | None]]] = {}
    for case in (*g.CASES, *bodies_gemini_tools.CASES):
        for body in (case.violating, case.valid):
            for path in _places(body)[1:]:
                kind = ".".join("*" if isinstance(step, int) else step for step in path)
                found.setdefault(kind, []).append((body, path, case.model))
    return found


@for_each("place, bodies", _bodies_by_place().items(), ids=lambda entry: entry[0])
def test_anything_anywhere_gives_a_verdict(place: str, bodies: list[tuple[Body, tuple[Any, ...], str | None]]) -> None:
    for number, odd in enumerate(ODD):
        # Hundreds of bodies have the common places: each odd value takes the next four of them.
        for turn in range(min(4, len(bodies))):
            body, path, model = bodies[(4 * number + turn) % len(bodies)]
            mutant = _set(body, path, odd)
            before = repr(mutant)
            verdict = conformance.check_body(mutant, "gemini", model=model)
            assert str(verdict).startswith("gemini")
            assert repr(mutant) == before, place


_KEYS = st.sampled_from(sorted({name for fields in FIELDS.values() for name in fields} | SNAKE.keys()))
_ANY = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.sampled_from(["model", "user", "ARRAY"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=6)),
    max_leaves=20,
)


@examples(5)
@given(
    body=st.fixed_dictionaries({"contents": st.lists(st.fixed_dictionaries({"role": _ANY, "parts": _ANY}))}),
    rest=st.dictionaries(_KEYS, _ANY, max_size=5),
    model=st.sampled_from([None, g.OLD, g.NEW, "x"]),
)
def test_any_object_gets_a_verdict(body: Body, rest: Body, model: str | None) -> None:
    whole = {**rest, **body}
    first = conformance.check_body(whole, "gemini", model=model)
    assert first == conformance.check_body(copy.deepcopy(whole), "gemini", model=model)


def test_deep_schemas_end() -> None:
    schema: dict[str, Any] = {"type": "ARRAY"}
    for _ in range(100_000):
        schema = {"type": "ARRAY", "items": schema}
    body = g.declares({"name": "f", "parameters": schema})
    verdict: list[Any] = []
    count_work(lambda: verdict.extend(conformance.check_body(body, "gemini")), limit=100_000)
    assert any("nesting depth" in violation.message for violation in verdict)
    while schema:
        schema = schema.pop("items", {})


def test_message_is_the_providers() -> None:
    body = g.body(g.model(g.call(is_error=True)), g.user(g.response()))
    (violation,) = conformance.check_body(body, "gemini")
    assert "Unknown name 'is_error': Cannot find field." in violation.message
    assert json.dumps(conformance.check_body(body, "gemini").to_dict())

"""Through every wire in turn and back to the source: each call keeps its arguments and its own result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import segue
from tests.budget import examples, sample
from tests.conversations.build import Case
from tests.conversations.readers import read
from tests.conversations.table import CASES
from tests.properties import checks
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios, source_models
from tests.properties.readers import Interaction

ERROR = re.compile(r"^(\[error\]\s*)+")
MEDIA = re.compile(
    r"\s*\[[\w ]+ (follows|not supported here)\]( [^\s\[]+)?"
)  # notes for media that a result cannot have
EVERYWHERE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # a name that every API takes


def route(source: str) -> list[str]:
    """All other wires in registry order, starting after the source, then the source."""
    at = checks.TARGETS.index(source)
    return [*checks.TARGETS[at + 1 :], *checks.TARGETS[:at], source]


def convert_along(body: Any, source: str, log: Callable[[str], object] = str) -> Any:
    """The body back at the source; the body is checked at every step."""
    for target in route(source):
        body = segue.convert(body, source=source, target=target).body
        log(f"{target}: {checks.dump_json(body)}")
        checks.check_accepted(body, target, None)
        source = target
    return body


def value_of(arguments: Any) -> Any:
    """Arguments without the wrapper of targets that need an object."""
    match arguments:
        case {"input": inner} | {"_raw": inner} | {"value": inner} if len(arguments) == 1:
            return value_of(inner)
        case "" | None:
            return {}
        case _:
            return arguments


def normalize_text(text: str | None) -> Any:
    """A result's text without white space, which parts may add between them; JSON counts as its value."""
    bare = MEDIA.sub("", ERROR.sub("", text or ""))
    try:
        return json.loads(bare)
    except ValueError:
        return "".join(bare.split())


def same(one: Interaction, other: Interaction) -> None:
    assert checks.dump_json(value_of(other.arguments)) == checks.dump_json(value_of(one.arguments)), (
        f"{one} became {other}"
    )
    if one.text is None:  # a call that may stay open for the same API
        assert checks.INTERRUPTED in str(other.text), f"{one} became {other}"
    else:
        assert normalize_text(other.text) == normalize_text(one.text), f"{one} became {other}"


def read_at_source(case: Case) -> list[Interaction]:
    """The interactions of the body repaired for its own API; those that only it has, as converted to Chat."""
    own = read(segue.convert(case.body, source=case.source, target=case.source).body, case.source).interactions
    chat = read(segue.convert(case.body, source=case.source, target="openai-chat").body, "openai-chat").interactions
    if len(own) != len(chat):
        return chat
    return [
        one if one.text is None or normalize_text(one.text) else other for one, other in zip(own, chat, strict=True)
    ]


# For the same API the output stays before its call, where a plain reader does not look for it.
READABLE = [case for case in CASES if case.name != "responses_early_output"]


@pytest.mark.parametrize("case", [*sample(READABLE, 3)], ids=lambda case: case.name)
def test_conversation_survives_the_route(case: Case) -> None:
    before = read_at_source(case)
    body = convert_along(case.body, case.source)
    reading = read(body, case.source)
    assert not reading.surplus, f"results at no call: {reading.surplus}"
    assert len(reading.interactions) == len(before), f"{before}\nbecame {reading.interactions}"
    for one, other in zip(before, reading.interactions, strict=True):
        same(one, other)
    names = {(one.name, other.name) for one, other in zip(before, reading.interactions, strict=True)}
    assert len(names) == len({one for one, _ in names}) == len({other for _, other in names}), f"names: {names}"
    assert all(one == other for one, other in names if EVERYWHERE.fullmatch(one)), f"names: {names}"


@pytest.mark.parametrize("source", checks.TARGETS)
@examples(4, items=len(checks.TARGETS))
@given(data=st.data())
def test_scenario_survives_the_route(source: str, data: st.DataObject) -> None:
    scenario = data.draw(scenarios())
    assume(source != "gemini" or not scenario.is_ambiguous_when_joined())
    body = build_body(scenario, source, data.draw(st.sampled_from((None, *source_models(scenario, source)))))
    note(f"body: {checks.dump_json(body)}")
    same_api = convert_along(body, source, note)
    reading = read(same_api, source)
    checks.check_pairing(reading, scenario)
    lost = {marker for marker in scenario.kept_markers() if marker not in checks.dump_json(same_api)}
    assert not lost, f"lost: {sorted(lost)}"

"""Nothing that segue inserts in the assistant role looks like a tool call or a label (design §4.11).

Models imitate their own earlier messages. The oracles are the extractors of all text tool formats and the table of
fixed texts; texts of the source may look like anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Text
from segue.canonical.json import parse_json
from segue.canonical.request import Request
from segue.render.constraints import TEXTS
from segue.wire.registry import WIRES
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import FoundCall
from segue.wire.text.registry import FORMATS
from segue.wire.text.scan import scan_text
from tests.budget import examples, sample, sample_pairs
from tests.conversations.table import CASES
from tests.properties import checks
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios

# A filler stands where a target requires an assistant message between results and the user. Reasoning as text is a
# choice of the caller.
_EXEMPT = frozenset(
    {"filler", "first_user_message", "last_user_message", "reasoning", "reasoning_placeholder", "error", "no_result"}
)
_LABELS = {
    name: re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)), re.DOTALL)
    for name, text in vars(TEXTS).items()
    if isinstance(text, str) and not name.startswith("_") and name not in _EXEMPT
}
POLICIES: tuple[dict[str, Any], ...] = ({}, {"hosted": "text"}, {"hosted": "drop"}, {"orphans": "drop"})


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _strings_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings_in(inner)
    elif isinstance(value, str):
        yield value


def _assistant_texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        if message.speaker == "ai":
            yield from (block.text for block in message.blocks if isinstance(block, Text))


def check_assistant_texts(body: Any, converted: Any, target: str) -> None:
    source_text = "\n".join(_strings_in(parse_json(body)[0] if isinstance(body, bytes | str) else body))
    request = WIRES[target].parse_request(converted.body)
    declared = DeclaredTools(request.tools)
    for text in _assistant_texts(request):
        if text in source_text:
            continue
        found = [name for name, label in _LABELS.items() if (one := label.search(text)) and one[0] not in source_text]
        assert not found, (found, text)
        for form in FORMATS:
            calls = [piece for piece in scan_text(text, form, declared) if isinstance(piece, FoundCall)]
            assert all(call.raw_text in source_text for call in calls), (form.name, text)


@pytest.mark.parametrize(("number", "case"), [*enumerate(CASES)], ids=[case.name for case in CASES])
def test_conversations(number: int, case: Any) -> None:
    for target, policy in sample(product(WIRES, POLICIES), 9, start=number):
        if target == case.source:
            continue
        try:
            converted = segue.convert(
                case.body, source=case.source, target=target, model=case.models.get(target), **policy
            )
        except segue.InputError:
            continue
        check_assistant_texts(case.body, converted, target)


PAIRS = [(source, target) for source, target in sample_pairs(checks.TARGETS) if source != target]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@examples(2, items=len(PAIRS))
@given(data=st.data())
def test_scenarios(source: str, target: str, data: st.DataObject) -> None:
    body = build_body(data.draw(scenarios()), source, None)
    policy = data.draw(st.sampled_from(POLICIES))
    check_assistant_texts(body, segue.convert(body, source=source, target=target, **policy), target)

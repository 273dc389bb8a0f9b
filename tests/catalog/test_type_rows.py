"""The table of conversions by type equals the actual conversions."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.blocks import Block, ToolCall, ToolResponse
from segue.wire.catalog.registry import type_rows
from segue.wire.registry import WIRES
from tests.catalog.vendor_catalog import Sample, samples
from tests.properties.readers import read

ROWS = {(row.provider, row.wire_type): row for row in type_rows()}


def _holds(body: Any, payload: dict[str, Any]) -> bool:
    if isinstance(body, dict):
        same = payload.items() <= body.items() if payload.keys() <= body.keys() else False
        return same or any(_holds(value, payload) for value in body.values())
    return isinstance(body, list) and any(_holds(item, payload) for item in body)


def _body(sample: Sample, target: str, *, paired: bool) -> Any:
    """A conversation of the sample and its counterpart, the call first."""
    mates = [each for each in samples() if each.provider == sample.provider and each.pair == sample.pair]
    own = segue.parse_item(sample.payload, sample.provider, sample.wire_type)
    called, answered = _is_call(own), _is_result(own)
    before: list[Block] = []
    after: list[Block] = []
    for mate in mates if paired and sample.pair is not None else ():
        given = segue.parse_item(mate.payload, mate.provider, mate.wire_type)
        if not called and not before and _is_call(given):
            before = given
        elif not answered and not after and _is_result(given):
            after = given
    chat = segue.Conversation()
    chat.add_user("Go on.")
    for blocks in (before, own, after):
        chat.add_blocks(*blocks)
    chat.add_user("And now?")
    return chat.render(target).body


def _is_call(blocks: list[Block]) -> bool:
    return any(isinstance(block, ToolCall) for block in blocks)


def _is_result(blocks: list[Block]) -> bool:
    return any(isinstance(block, ToolResponse) for block in blocks)


@pytest.mark.parametrize("target", WIRES)
def test_table_equals_conversions(target: str) -> None:
    for sample in samples():
        row = ROWS[sample.provider, sample.wire_type]
        becomes = row.by_wire[target]
        if becomes == "itself in replies":
            becomes = next(other for other in row.by_wire.values() if other != becomes)
        if becomes == "result" and sample.pair is None:
            continue
        body = _body(sample, target, paired=becomes != "text")
        interactions = read(body, target).interactions
        where = f"{sample} on {target}: {becomes}"
        if becomes == "itself":
            # What stands alone may have to be completed, an old function call is a whole message, and a shell's call
            # in a container goes back only where the body around it says how it ended (OAI-RESP-04). Namespaces are
            # spelled out where no declaration has them, and what a search for tools found is no item by itself.
            lone = sample.pair is None and not sample.wire_type.endswith("ToolCall")
            other = "Legacy" in sample.wire_type or sample.pair == "shell-timeout" or "namespace" in sample.payload
            other = other or ROWS[sample.provider, sample.wire_type].family == "tool-search"
            assert lone or other or _holds(body, sample.payload), where
        elif becomes == "text":
            assert not interactions, where
        elif becomes == "call":
            assert interactions, where
        elif becomes in ("result", "call and result"):
            assert interactions, where
            assert interactions[0].text is not None, where

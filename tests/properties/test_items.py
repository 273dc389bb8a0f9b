"""Conversations of any catalogued items in any order: valid on every wire, paired, with stable ids."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Block, ToolCall, ToolResponse
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.catalog.vendor_catalog import Sample, samples
from tests.properties.readers import read

_ITEMS = st.lists(st.one_of(st.sampled_from(samples()), st.sampled_from(["Go on.", "Wait."])), min_size=1, max_size=12)


def _conversation(drawn: list[object]) -> tuple[segue.Conversation, list[Block]]:
    chat = segue.Conversation()
    chat.add_user("Begin.")
    added: list[Block] = []
    for one in drawn:
        if isinstance(one, str):
            chat.add_user(one)
            continue
        assert isinstance(one, Sample)
        for message in chat.add_blocks(*segue.parse_item(one.payload, one.provider, one.wire_type)):
            added += message.blocks
    return chat, added


@pytest.mark.parametrize("target", WIRES)
@examples(4, items=len(WIRES))
@given(drawn=_ITEMS, hosted=st.sampled_from(["pair", "text", "drop"]))
def test_any_items_make_a_valid_body(target: str, drawn: list[object], hosted: str) -> None:
    note(f"{[str(one) for one in drawn]}")
    chat, added = _conversation(drawn)
    out = chat.render(target, hosted=hosted)
    verdict = segue.check(out.data, target)
    assert verdict, list(verdict)
    reading = read(out.body, target)
    assert not reading.surplus
    if target in ("openai-responses", "azure-foundry"):
        # They have types of their own, which are no calls to their reader, and calls without expected results.
        return
    assert all(one.text is not None for one in reading.interactions)
    if hosted == "pair":
        calls = {block.id for block in added if isinstance(block, ToolCall) and not block.origin.is_approval}
        client = {block.id for block in added if isinstance(block, ToolCall) and block.kind != "hosted"}
        assert len(client) <= len(reading.interactions) <= len(calls)


@examples(1)
@given(drawn=_ITEMS)
def test_ids_outlive_storage(drawn: list[object]) -> None:
    chat, added = _conversation(drawn)
    again = segue.Conversation.load(chat.dump())
    assert again.messages == chat.messages
    for block in added:
        assert not isinstance(block, ToolCall) or block.id
        assert not isinstance(block, ToolResponse) or block.call_id
    assert again.render("gemini").data == chat.render("gemini").data

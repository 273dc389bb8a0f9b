"""Every sample in a conversation, on every wire: the body is valid, and no text is lost."""

from __future__ import annotations

import pytest

import segue
from segue.canonical.blocks import Block, Media, ToolCall, ToolResponse
from segue.wire.catalog.registry import type_rows
from segue.wire.registry import WIRES
from tests.catalog.texts import body_strings, lines, texts
from tests.catalog.vendor_catalog import Sample, samples
from tests.each import for_each

ROWS = {(row.provider, row.wire_type): row for row in type_rows()}
every_sample = pytest.mark.parametrize("sample", samples(), ids=str)
every_wire = for_each("target", WIRES)


def _conversation(sample: Sample) -> tuple[segue.Conversation, list[Block]]:
    chat = segue.Conversation()
    chat.add_user("Go on.")
    blocks = segue.parse_item(sample.payload, sample.provider, sample.wire_type)
    chat.add_blocks(*blocks)
    chat.add_user("And now?")
    return chat, blocks


@every_sample
@every_wire
def test_conversation_is_valid_and_loses_no_text(sample: Sample, target: str) -> None:
    chat, blocks = _conversation(sample)
    out = chat.render(target)
    verdict = segue.check(out.data, target)
    assert verdict, list(verdict)
    strings = body_strings(out.body)
    for block in blocks if ROWS[sample.provider, sample.wire_type].by_wire[target] != "itself" else ():
        for word in texts(block):
            assert all(line in strings for line in lines(word)), f"{word!r} is lost"


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-chat", "openai-responses"])
def test_images_are_kept_where_the_target_supports_them(target: str) -> None:
    for sample in samples():
        chat, blocks = _conversation(sample)
        shown = [inner for block in blocks if isinstance(block, ToolResponse) for inner in block.content or ()]
        for data in [inner.data for inner in shown if isinstance(inner, Media) and inner.data]:
            assert data in body_strings(chat.render(target).body), sample


@every_sample
@for_each("hosted", ["text", "drop"])
def test_every_policy_gives_a_valid_body(sample: Sample, hosted: str) -> None:
    chat, _ = _conversation(sample)
    for target in WIRES:
        out = chat.render(target, hosted=hosted)
        assert segue.check(out.data, target), (target, list(segue.check(out.data, target)))


@for_each("sample", samples())
def test_stored_conversation_is_restored(sample: Sample) -> None:
    chat, _ = _conversation(sample)
    again = segue.Conversation.load(chat.dump())
    assert again.messages == chat.messages
    assert again.render("anthropic").data == chat.render("anthropic").data


@pytest.mark.parametrize("target", WIRES)
def test_pairs_meet_on_every_wire(target: str) -> None:
    """The call and the output of each pair of samples, added in sequence, are one interaction."""
    pairs: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples():
        if sample.pair is not None:
            pairs.setdefault((sample.provider, sample.pair), []).append(sample)
    for (provider, pair), members in pairs.items():
        parsed = [segue.parse_item(each.payload, provider, each.wire_type) for each in members]
        calls = [blocks for blocks in parsed if any(_is_call(block) for block in blocks)]
        outputs = [blocks for blocks in parsed if any(isinstance(block, ToolResponse) for block in blocks)]
        if not calls or not outputs or calls[0] is outputs[0]:
            continue
        chat = segue.Conversation()
        chat.add_user("Go on.")
        chat.add_blocks(*calls[0])
        chat.add_blocks(*outputs[0])
        assert not chat.pending, (provider, pair)
        out = chat.render(target)
        assert segue.check(out.data, target), (provider, pair)
        assert not out.report.findings_of("synthetic"), (provider, pair)
        assert not out.report.findings_of("orphan"), (provider, pair)


def _is_call(block: Block) -> bool:
    return isinstance(block, ToolCall) and not block.origin.is_approval

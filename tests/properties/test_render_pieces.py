"""A conversation rendered in pieces has the bytes and the findings of a render of the whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Origin, ToolCall
from segue.canonical.request import Reply
from segue.conversion.convert import report_conflicting_results, report_dropped_model
from segue.conversion.pieces import NeedsWholeRenderError, Piece, render_pieces
from segue.conversion.target import RenderTarget
from segue.render.report import ChainedReport, Finding, Report
from segue.wire.registry import WIRES
from tests.budget import examples, sample
from tests.conversations.build import Case
from tests.conversations.table import CASES
from tests.properties.test_rendered_prefix import TARGETS, TOOLS, agent, apply_steps, render_whole, steps


def list_pieces(
    chat: segue.Conversation, target: str, model: str | None = None, *, size: int = 1, segment: int = 1
) -> list[Piece]:
    """Render in pieces of at least this size; the messages are read in segments of this length."""
    wire, request, messages = WIRES[target], chat.state.request, chat.messages
    destination = RenderTarget.choose(request, wire, model, chat._iter_origins())
    if not destination.can_extend(request):
        raise NeedsWholeRenderError
    segments = (messages[start : start + segment] for start in range(0, len(messages), segment))
    return list(render_pieces(destination.start_prefix(request), segments, piece_size=size))


def find_places(report: Report) -> dict[Finding, tuple[set[str], set[str]]]:
    return {finding.key: (set(finding.call_ids), set(finding.paths)) for finding in report.findings}


def check_pieces(
    chat: segue.Conversation, target: str, model: str | None = None, *, size: int = 1, segment: int = 1
) -> int:
    """Compare the pieces with the whole; return their number, 0 if there are none."""
    try:
        pieces = list_pieces(chat, target, model, size=size, segment=segment)
    except NeedsWholeRenderError:
        return 0
    expected = render_whole(chat, target, model)
    start, *_, end = pieces[-1].fragments
    entries = (b"".join(piece.fragments[1:-1]) for piece in pieces)
    assert start + b",".join(filter(None, entries)) + end == expected.data
    report = Report()
    report_conflicting_results(chat.state.history.conflicting, report)
    if expected.report.model is None:
        report_dropped_model(chat.state.request, WIRES[target], report)
    report = ChainedReport((report, *(piece.report for piece in pieces)))
    assert report.seen == expected.report.seen
    assert report.emitted_calls == expected.report.emitted_calls
    assert report.emitted_results == expected.report.emitted_results
    assert find_places(report) == find_places(expected.report)
    return len(pieces)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("target", TARGETS)
def test_long_conversation_has_many_pieces(target: str, provider: str) -> None:
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    for number in range(24):
        agent(chat, number, provider)
    assert check_pieces(chat, target, size=1) > 8
    assert 3 <= check_pieces(chat, target, size=16, segment=7) <= 6
    assert check_pieces(chat, target, size=1000) == 1


@examples(4)
@given(
    target=st.sampled_from(TARGETS),
    scenario=steps,
    size=st.integers(1, 6),
    segment=st.integers(1, 4),
    runs=st.integers(0, 3),
)
def test_pieces_are_the_whole(target: str, scenario: list[tuple[str, Any]], size: int, segment: int, runs: int) -> None:
    chat = segue.Conversation(system="Be brief.", tools=TOOLS)
    chat.add_user("begin")
    for number in range(runs):
        agent(chat, number, "anthropic")
    for what, how in scenario:
        apply_steps(chat, what, how)
    for number in range(runs):
        agent(chat, number, "openai")
    check_pieces(chat, target, size=size, segment=segment)


def add_run(chat: segue.Conversation, provider: str) -> None:
    """Three calls of the conversation's first function tool, or of an undeclared one, one after the other."""
    name = next((tool.name for tool in chat.tools if tool.kind == "function"), "look")
    chat.add_user("Again.")
    for number in range(3):
        call = ToolCall(name, {"n": number}, origin=Origin(provider, raw_id=f"call_{number}"))
        for added in chat.add_reply(Reply((call,))).calls:
            chat.add_result(added, "done")


@pytest.mark.parametrize("target", TARGETS)
def test_every_conversation_between_two_runs(target: str) -> None:
    """Content that depends on distant messages is in the first piece, or the conversation has no pieces."""
    counts: list[int] = []
    for number, case in enumerate(sample(CASES, 24, start=TARGETS.index(target))):
        provider = ("openai", "anthropic")[number % 2]
        chat = open_case(case)
        if chat is None:
            continue
        later = segue.Conversation(tools=chat.tools)
        add_run(later, provider)
        later.state.history.add(*chat.messages)
        add_run(later, provider)
        counts.append(check_pieces(later, target))
        add_run(chat, provider)
        counts.append(check_pieces(chat, target))
    assert max(counts) > 2


def open_case(case: Case) -> segue.Conversation | None:
    try:
        return segue.Conversation.from_body(copy.deepcopy(case.body), source=case.source)
    except segue.InputError:
        return None

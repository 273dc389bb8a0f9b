"""The report on a sample, told of the whole conversation that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

import msgspec
from msgspec import Struct

from segue.canonical.plain import Call, NotPlain, Plain, Turn
from segue.carry import unsaid_finding
from segue.render.report import Finding, Report
from segue.wire.base import Wire

__all__ = ["Count", "counted", "is_placeholder", "tell_of_all"]

# What is found on single events and not counted here: a conversation with such a thing in it is not plain.
_NOT_COUNTED = frozenset(
    {"argument", "dedupe", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)


class Count(Struct, gc=False):
    """What a report has to tell of a conversation. `openers` are the first calls of the replies that have any."""

    calls: list[Call]
    openers: list[str]
    thoughts: int
    unsaid: dict[str, int]


def counted(plain: Plain, calls: list[Call]) -> Count:
    turns = [event for event in plain.events if type(event) is Turn]
    openers = [turn.calls[0].id for turn in turns if turn.calls]
    return Count(calls, openers, sum([turn.thoughts for turn in turns]), plain.unsaid)


def tell_of_all(report: Report, few: Count, many: Count, unsaid: Mapping[str, int], target: Wire) -> None:
    """`few` is what the sample has, `many` what the whole has; `unsaid` counts keys in the sample and around it."""
    pairs = [(call.id, call.sent_id) for call in few.calls]
    if report.seen != [call.id for call in few.calls] or not report.emitted_calls == report.emitted_results == pairs:
        raise NotPlain
    report.seen = [call.id for call in many.calls]
    report.emitted_calls = [(call.id, call.sent_id) for call in many.calls]
    report.emitted_results = report.emitted_calls.copy()
    more = {
        unsaid_finding(key, count, target): unsaid_finding(key, count - few.unsaid[key] + many.unsaid[key], target)
        for key, count in unsaid.items()
        if key in many.unsaid
    }
    report.findings = [more.get(finding, finding) for finding in _multiplied(report.findings, few, many)]


def is_placeholder(finding: Finding) -> bool:
    """Whether this tells of a placeholder for reasoning."""
    return finding.kind == "reasoning" and finding.call_id is not None


def _group(finding: Finding) -> str:
    return finding.kind if finding.kind != "reasoning" else "placeholder" if is_placeholder(finding) else "thought"


def _multiplied(findings: Iterable[Finding], few: Count, many: Count) -> list[Finding]:
    """What was found on each event of the sample, told for each event of the whole."""
    made: list[Finding] = []
    for group, found in groupby(findings, _group):
        run = list(found)
        if group == "thought":
            if run != [run[0]] * few.thoughts:
                raise NotPlain
            run = [run[0]] * many.thoughts
        elif group == "placeholder":
            if [finding.call_id for finding in run] != few.openers:
                raise NotPlain
            run = [msgspec.structs.replace(run[0], call_id=call_id) for call_id in many.openers]
        elif group in _NOT_COUNTED:
            raise NotPlain
        made += run
    return made

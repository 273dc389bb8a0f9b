"""The report on a sample, told of the whole conversation that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec

from segue.canonical.plain import NotPlain, Plain, Turn
from segue.carry import Carried, unsaid_finding, unsaid_items
from segue.render.demands import Demands
from segue.render.plain import bridges, thoughtless
from segue.render.reasoning import PLACEHOLDER
from segue.render.report import Finding
from segue.render.roles import BRIDGE
from segue.wire.base import Wire

__all__ = ["is_placeholder", "tell_of_all"]

# What is found on single events and not counted here: a conversation with such a thing in it is not plain.
_NOT_COUNTED = frozenset(
    {"argument", "dedupe", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)


def tell_of_all(carried: Carried, sample: Plain, whole: Plain, target: Wire) -> None:
    """The report on what was carried becomes one on the whole."""
    report = carried.said.report
    unsaid = unsaid_items(carried.request, target)
    pairs = list(zip(sample.ids, sample.sent_ids, strict=True))
    if report.seen != sample.ids or not report.emitted_calls == report.emitted_results == pairs:
        raise NotPlain
    report.seen = whole.ids.copy()
    report.emitted_calls = list(zip(whole.ids, whole.sent_ids, strict=True))
    report.emitted_results = report.emitted_calls.copy()
    more = {
        unsaid_finding(key, count, target): unsaid_finding(key, count - sample.unsaid[key] + whole.unsaid[key], target)
        for key, count in unsaid.items()
        if key in whole.unsaid
    }
    findings = _multiplied(report.findings, sample, whole, carried.transcript.demands)
    report.findings = [more.get(finding, finding) for finding in findings]


def _thoughts(plain: Plain) -> int:
    return sum([event.thoughts for event in plain.events if isinstance(event, Turn)])


def _openers(plain: Plain, demands: Demands) -> list[str | None]:
    """The first call, if there is any, of each reply that gets a placeholder."""
    return [plain.ids[turn.start] if turn.start < turn.stop else None for turn in thoughtless(plain, demands)]


def is_placeholder(finding: Finding) -> bool:
    """Whether this tells of a placeholder for reasoning."""
    return finding.message == PLACEHOLDER


def _group(finding: Finding) -> str:
    return finding.message if finding.message in (PLACEHOLDER, BRIDGE) else finding.kind


def _multiplied(findings: Iterable[Finding], sample: Plain, whole: Plain, demands: Demands) -> list[Finding]:
    """What was found on each event of the sample, told for each event of the whole."""
    made: list[Finding] = []
    for group, found in groupby(findings, _group):
        run = list(found)
        if group == BRIDGE:
            if run != [run[0]] * bridges(sample.events):
                raise NotPlain
            run = [run[0]] * bridges(whole.events)
        elif group == "reasoning":
            if run != [run[0]] * _thoughts(sample):
                raise NotPlain
            run = [run[0]] * _thoughts(whole)
        elif group == PLACEHOLDER:
            if [finding.call_id for finding in run] != _openers(sample, demands):
                raise NotPlain
            run = [msgspec.structs.replace(run[0], call_id=call_id) for call_id in _openers(whole, demands)]
        elif group in _NOT_COUNTED:
            raise NotPlain
        made += run
    return made

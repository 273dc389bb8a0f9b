"""The report on a sample, told of the whole conversation that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

import msgspec

from segue.canonical.plain import NotPlain, Plain, Turn
from segue.carry import unsaid_finding
from segue.render.report import Finding, Report
from segue.wire.base import Wire

__all__ = ["is_placeholder", "tell_of_all"]

# What is found on single events and not counted here: a conversation with such a thing in it is not plain.
_NOT_COUNTED = frozenset(
    {"argument", "dedupe", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)


def tell_of_all(report: Report, sample: Plain, whole: Plain, unsaid: Mapping[str, int], target: Wire) -> None:
    """`unsaid` counts keys in the sample and around it."""
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
    report.findings = [more.get(finding, finding) for finding in _multiplied(report.findings, sample, whole)]


def _thoughts(plain: Plain) -> int:
    return sum([event.thoughts for event in plain.events if isinstance(event, Turn)])


def _openers(plain: Plain) -> list[str]:
    """The first call of each reply that has any."""
    turns = [event for event in plain.events if isinstance(event, Turn)]
    return [plain.ids[turn.start] for turn in turns if turn.start < turn.stop]


def is_placeholder(finding: Finding) -> bool:
    """Whether this tells of a placeholder for reasoning."""
    return finding.kind == "reasoning" and finding.call_id is not None


def _group(finding: Finding) -> str:
    return finding.kind if finding.kind != "reasoning" else "placeholder" if is_placeholder(finding) else "thought"


def _multiplied(findings: Iterable[Finding], sample: Plain, whole: Plain) -> list[Finding]:
    """What was found on each event of the sample, told for each event of the whole."""
    made: list[Finding] = []
    for group, found in groupby(findings, _group):
        run = list(found)
        if group == "thought":
            if run != [run[0]] * _thoughts(sample):
                raise NotPlain
            run = [run[0]] * _thoughts(whole)
        elif group == "placeholder":
            if [finding.call_id for finding in run] != _openers(sample):
                raise NotPlain
            run = [msgspec.structs.replace(run[0], call_id=call_id) for call_id in _openers(whole)]
        elif group in _NOT_COUNTED:
            raise NotPlain
        made += run
    return made

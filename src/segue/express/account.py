"""The report on a sample, told of the whole conversation that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec
from msgspec import Struct

from segue.canonical.plain import NotPlainError, Plain, Turn
from segue.carry import Carried, unsaid_finding, unsaid_items
from segue.render.plain import Ways, bridges, thoughtless
from segue.render.reasoning_asked import PLACEHOLDER
from segue.render.report import Finding, Report
from segue.render.roles import BRIDGE
from segue.wire.base import Wire

__all__ = ["Account", "account_of", "report_on"]

# What is found on single events and not counted here: a conversation with such a thing in it is not plain.
_NOT_COUNTED = frozenset(
    {"argument", "dedupe", "id", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)
_THOUGHT, _UNSAID = "reasoning", "unsaid"


class Account(Struct, frozen=True):
    """A report in which what is found on each of several events stands once, under what it is counted by.

    `unsaid` counts keys that only their own API has a word for, outside the conversation.
    """

    target: Wire
    id_scheme: str
    model: str | None
    findings: list[tuple[str, Finding]]
    unsaid: dict[str, int]


def account_of(sample: Plain, carried: Carried, target: Wire) -> Account:
    """What the long way reported, if that is what the sample gives cause for."""
    report, demands = carried.said.report, carried.transcript.demands
    pairs = list(zip(sample.ids, sample.sent_ids, strict=True))
    if report.seen != sample.ids or not report.emitted_calls == report.emitted_results == pairs:
        raise NotPlainError
    counted = unsaid_items(carried.request, target)
    unsaid = {unsaid_finding(key, count, target): key for key, count in counted.items()}
    made: list[tuple[str, Finding]] = []
    for group, found in groupby(report.findings, lambda finding: _group(finding, unsaid)):
        run = list(found)
        if group in (PLACEHOLDER, BRIDGE, _THOUGHT):
            if run != _multiplied(group, run[0], sample, Ways(demands)):
                raise NotPlainError
            made.append((group, run[0]))
        elif group in _NOT_COUNTED:
            raise NotPlainError
        else:
            made += [(group, finding) for finding in run]
    around = {key: count - sample.unsaid.get(key, 0) for key, count in counted.items()}
    return Account(target, report.id_scheme, report.model, made, around)


def _group(finding: Finding, unsaid: Iterable[Finding]) -> str:
    if finding in unsaid:
        return _UNSAID
    return finding.message if finding.message in (PLACEHOLDER, BRIDGE) else finding.kind


def _multiplied(group: str, finding: Finding, plain: Plain, ways: Ways) -> list[Finding]:
    """What was found on one event, told for each of its kind."""
    if group == BRIDGE:
        return [finding] * bridges(plain.events)
    if group == _THOUGHT:
        return [finding] * sum([event.thoughts for event in plain.events if isinstance(event, Turn)])
    turns = thoughtless(plain, ways.demands)
    openers = [plain.ids[turn.start] if turn.start < turn.stop else None for turn in turns]
    return [msgspec.structs.replace(finding, call_id=call_id) for call_id in openers]


def report_on(whole: Plain, account: Account, ways: Ways) -> Report:
    """The report that the long way would have given."""
    report = Report(target=account.target.name, id_scheme=account.id_scheme, model=account.model)
    report.seen = whole.ids.copy()
    report.emitted_calls = list(zip(whole.ids, whole.sent_ids, strict=True))
    report.emitted_results = report.emitted_calls.copy()
    for group, finding in account.findings:
        if group == _UNSAID:
            key = finding.subject or ""
            count = account.unsaid[key] + whole.unsaid.get(key, 0)
            report.findings.append(unsaid_finding(key, count, account.target))
        elif group in (PLACEHOLDER, BRIDGE, _THOUGHT):
            report.findings += _multiplied(group, finding, whole, ways)
        else:
            report.findings.append(finding)
    return report

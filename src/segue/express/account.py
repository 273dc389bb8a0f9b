"""Builds the report of the whole conversation from the report of its sample."""

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

# Findings on single events that are not extrapolated: they need the full pipeline.
_NOT_COUNTED = frozenset(
    {"argument", "dedupe", "id", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)
_THOUGHT, _UNSAID = "reasoning", "unsaid"


class Account(Struct, frozen=True):
    """A report in which a finding that is repeated for each event of a group is held once, with the group.

    `dropped_keys` counts keys outside the conversation that only their own API has.
    """

    target: Wire
    id_scheme: str
    model: str | None
    findings: list[tuple[str, Finding]]
    unsaid: dict[str, int]


def account_of(sample: Plain, carried: Carried, target: Wire) -> Account:
    """Build the template from the full pipeline's report on the sample; raise if it has unexpected findings."""
    report, constraints = carried.said.report, carried.transcript.demands
    pairs = list(zip(sample.ids, sample.sent_ids, strict=True))
    if report.seen != sample.ids or not report.emitted_calls == report.emitted_results == pairs:
        raise NotPlainError
    counted = unsaid_items(carried.request, target)
    dropped = {unsaid_finding(key, count, target): key for key, count in counted.items()}
    made: list[tuple[str, Finding]] = []
    for group, found in groupby(report.findings, lambda finding: _group(finding, dropped)):
        run = list(found)
        if group in (PLACEHOLDER, BRIDGE, _THOUGHT):
            if run != _multiplied(group, run[0], sample, Ways(constraints)):
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
    """Return the finding on one event repeated for each event of its group."""
    if group == BRIDGE:
        return [finding] * bridges(plain.events)
    if group == _THOUGHT:
        return [finding] * sum([event.thoughts for event in plain.events if isinstance(event, Turn)])
    turns = thoughtless(plain, ways.demands)
    openers = [plain.ids[turn.start] if turn.start < turn.stop else None for turn in turns]
    return [msgspec.structs.replace(finding, call_id=call_id) for call_id in openers]


def report_on(whole: Plain, account: Account, ways: Ways) -> Report:
    """Return the report that the full pipeline would have made."""
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

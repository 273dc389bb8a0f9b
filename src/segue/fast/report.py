"""Builds the report of the whole conversation from the report of its sample."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec
from msgspec import Struct

from segue.canonical.fast_history import FastHistory, FastPathUnsupportedError, FastTurn
from segue.pipeline import Conversion, count_dropped_fields, dropped_finding
from segue.render.fast_passes import FastRenderOptions, count_fillers, turns_needing_reasoning
from segue.render.reasoning_options import PLACEHOLDER_INSERTED
from segue.render.report import Finding, Report
from segue.render.roles import FILLER_INSERTED
from segue.wire.base import Wire

# Findings on single events: whether others have them too can't be derived from the sample.
_UNSUPPORTED_KINDS = frozenset(
    {"argument", "dedupe", "id", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)
_REASONING, _DROPPED_KEYS = "reasoning", "dropped keys"


class ReportTemplate(Struct, frozen=True):
    """The report of a sample. A finding that is repeated for each event of a group is held once, with its group.

    `dropped_keys` counts the dropped keys of items outside the conversation.
    """

    target: Wire
    id_scheme: str
    model: str | None
    findings: list[tuple[str, Finding]]
    dropped_keys: dict[str, int]


def build_report_template(sample: FastHistory, conversion: Conversion, target: Wire) -> ReportTemplate:
    """Build the template from the full pipeline's report on the sample; raise if it has unexpected findings."""
    report, constraints = conversion.rendered.report, conversion.transcript.constraints
    pairs = list(zip(sample.ids, sample.sent_ids, strict=True))
    if report.seen != sample.ids or not report.emitted_calls == report.emitted_results == pairs:
        raise FastPathUnsupportedError
    counted = count_dropped_fields(conversion.request, target)
    dropped = {dropped_finding(key, count, target): key for key, count in counted.items()}
    findings: list[tuple[str, Finding]] = []
    for group, group_findings in groupby(report.findings, lambda finding: _finding_group(finding, dropped)):
        run = list(group_findings)
        if group in (PLACEHOLDER_INSERTED, FILLER_INSERTED, _REASONING):
            if run != _repeat_finding(group, run[0], sample, FastRenderOptions(constraints)):
                raise FastPathUnsupportedError
            findings.append((group, run[0]))
        elif group in _UNSUPPORTED_KINDS:
            raise FastPathUnsupportedError
        else:
            findings += [(group, finding) for finding in run]
    outside_counts = {key: count - sample.dropped_keys.get(key, 0) for key, count in counted.items()}
    return ReportTemplate(target, report.id_scheme, report.model, findings, outside_counts)


def _finding_group(finding: Finding, dropped_keys: Iterable[Finding]) -> str:
    if finding in dropped_keys:
        return _DROPPED_KEYS
    return finding.message if finding.message in (PLACEHOLDER_INSERTED, FILLER_INSERTED) else finding.kind


def _repeat_finding(group: str, finding: Finding, history: FastHistory, options: FastRenderOptions) -> list[Finding]:
    """Return the finding once for each event of its group."""
    if group == FILLER_INSERTED:
        return [finding] * count_fillers(history.events)
    if group == _REASONING:
        return [finding] * sum([event.reasoning_count for event in history.events if isinstance(event, FastTurn)])
    turns = turns_needing_reasoning(history, options.constraints)
    openers = [history.ids[turn.start] if turn.start < turn.stop else None for turn in turns]
    return [msgspec.structs.replace(finding, call_id=call_id) for call_id in openers]


def build_report(history: FastHistory, template: ReportTemplate, options: FastRenderOptions) -> Report:
    """Return the report that the full pipeline would have made."""
    report = Report(target=template.target.name, id_scheme=template.id_scheme, model=template.model)
    report.seen = history.ids.copy()
    report.emitted_calls = list(zip(history.ids, history.sent_ids, strict=True))
    report.emitted_results = report.emitted_calls.copy()
    for group, finding in template.findings:
        if group == _DROPPED_KEYS:
            key = finding.subject or ""
            count = template.dropped_keys[key] + history.dropped_keys.get(key, 0)
            report.findings.append(dropped_finding(key, count, template.target))
        elif group in (PLACEHOLDER_INSERTED, FILLER_INSERTED, _REASONING):
            report.findings += _repeat_finding(group, finding, history, options)
        else:
            report.findings.append(finding)
    return report

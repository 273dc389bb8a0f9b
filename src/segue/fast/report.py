"""The report of a conversation from that of its minimal conversation, which has the same kinds of findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.fast_history import FastPathUnsupportedError
from segue.fast.progress import Progress
from segue.render.reasoning_options import PLACEHOLDER_INSERTED
from segue.render.report import Finding, Report

# Findings on single events: whether others have them too can't be derived from the minimal conversation.
_UNSUPPORTED_KINDS = frozenset({"argument", "id", "orphan", "supplied", "surrogate", "synthetic"})


Calls: TypeAlias = tuple[list[str], list[tuple[str, str]], list[tuple[str, str]]]


class ReportTemplate(Struct, frozen=True):
    """The report of a minimal conversation: the whole one has the same findings, some of them with other calls."""

    target: str
    id_scheme: str
    tool_format: str
    model: str | None
    findings: list[Finding]


def make_report_template(report: Report) -> ReportTemplate:
    """Return the template; later findings of the report are not part of it."""
    return ReportTemplate(report.target, report.id_scheme, report.tool_format, report.model, [*report.findings])


def copy_calls(report: Report) -> Calls:
    """Return the ids of all calls that a report lists."""
    return [*report.seen], [*report.emitted_calls], [*report.emitted_results]


def build_report(progress: Progress, template: ReportTemplate, *, keeps_order: bool) -> Report:
    """Return the report that the full pipeline would have made. `keeps_order`: results are in the order of the body."""
    report = Report(
        target=template.target,
        id_scheme=template.id_scheme,
        tool_format=template.tool_format,
        model=template.model,
    )
    report.seen = progress.ids.copy()
    report.emitted_calls = list(zip(progress.ids, progress.sent_ids, strict=True))
    report.emitted_results = report.emitted_calls.copy()
    if keeps_order and progress.result_order is not None:
        report.emitted_results = [report.emitted_calls[index] for index in progress.result_order]
    report.extend([found for finding in template.findings for found in _derive_findings(finding, progress)])
    return report


def _derive_findings(finding: Finding, progress: Progress) -> Iterator[Finding]:
    """Yield the findings of this conversation in place of one of the minimal conversation."""
    if finding.message == PLACEHOLDER_INSERTED:
        yield msgspec.structs.replace(finding, call_ids=tuple(progress.turn_ids))
    elif finding.kind == "reordered":
        yield msgspec.structs.replace(finding, call_ids=tuple(progress.reordered_ids))
    elif finding.kind == "dedupe":
        for subject, call_id in progress.duplicates:
            yield msgspec.structs.replace(finding, subject=subject, call_ids=(call_id,))
    elif finding.call_ids or finding.kind in _UNSUPPORTED_KINDS:
        raise FastPathUnsupportedError
    else:
        yield finding

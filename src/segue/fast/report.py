"""Builds the report of the whole conversation from the report of its sample."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from segue.canonical.fast_history import FastHistory, FastPathUnsupportedError
from segue.pipeline import Conversion
from segue.render.fast_passes import FastRenderOptions, turns_needing_reasoning
from segue.render.reasoning_options import PLACEHOLDER_INSERTED
from segue.render.report import Finding, Report

# Findings on single events: whether others have them too can't be derived from the sample.
_UNSUPPORTED_KINDS = frozenset(
    {"argument", "dedupe", "id", "moved", "orphan", "reordered", "supplied", "surrogate", "synthetic", "text"}
)


class ReportTemplate(Struct, frozen=True):
    """The report of a sample: the whole conversation has the same findings, one of them with other call ids."""

    target: str
    id_scheme: str
    tool_format: str
    model: str | None
    findings: list[Finding]


def build_report_template(sample: FastHistory, conversion: Conversion) -> ReportTemplate:
    """Build the template from the full pipeline's report on the sample; raise if it has unexpected findings."""
    report, constraints = conversion.rendered.report, conversion.transcript.constraints
    pairs = list(zip(sample.ids, sample.sent_ids, strict=True))
    if report.seen != sample.ids or not report.emitted_calls == report.emitted_results == pairs:
        raise FastPathUnsupportedError
    for finding in report.findings:
        if finding.kind in _UNSUPPORTED_KINDS:
            raise FastPathUnsupportedError
        if finding != _replace_calls(finding, sample, FastRenderOptions(constraints)):
            raise FastPathUnsupportedError
    return ReportTemplate(report.target, report.id_scheme, report.tool_format, report.model, report.findings)


def _replace_calls(finding: Finding, history: FastHistory, options: FastRenderOptions) -> Finding:
    """Return the finding with the calls of this history."""
    if finding.message != PLACEHOLDER_INSERTED:
        return finding
    turns = turns_needing_reasoning(history, options.constraints)
    calls = tuple([history.ids[turn.start] for turn in turns if turn.start < turn.stop])
    return msgspec.structs.replace(finding, call_ids=calls)


def build_report(history: FastHistory, template: ReportTemplate, options: FastRenderOptions) -> Report:
    """Return the report that the full pipeline would have made."""
    report = Report(
        target=template.target,
        id_scheme=template.id_scheme,
        tool_format=template.tool_format,
        model=template.model,
    )
    report.seen = history.ids.copy()
    report.emitted_calls = list(zip(history.ids, history.sent_ids, strict=True))
    report.emitted_results = report.emitted_calls.copy()
    report.extend([_replace_calls(finding, history, options) for finding in template.findings])
    return report

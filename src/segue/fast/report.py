"""Builds the report of a whole conversation from the report of its minimal conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import join_texts
from segue.canonical.fast_history import Content, FastHistory, FastPathUnsupportedError, FastTurn
from segue.render.fast_passes import FastRenderOptions, turns_needing_reasoning
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
    if options.keeps_order and history.result_order is not None:
        report.emitted_results = [report.emitted_calls[index] for index in history.result_order]
    report.extend([found for finding in template.findings for found in _derive_findings(finding, history, options)])
    return report


def _derive_findings(finding: Finding, history: FastHistory, options: FastRenderOptions) -> Iterator[Finding]:
    """Yield the findings of this history in place of one of the minimal conversation."""
    if finding.message == PLACEHOLDER_INSERTED:
        turns = turns_needing_reasoning(history, options.constraints)
        calls = tuple([history.ids[turn.start] for turn in turns if turn.start < turn.stop])
        yield msgspec.structs.replace(finding, call_ids=calls)
    elif finding.kind == "reordered":
        turns = [event for event in history.events if isinstance(event, FastTurn) and event.is_reordered]
        yield msgspec.structs.replace(finding, call_ids=tuple([history.ids[turn.start] for turn in turns]))
    elif finding.kind == "dedupe":
        for index in history.duplicates:
            subject = _join_content(history.results[index]).strip()
            yield msgspec.structs.replace(finding, subject=subject, call_ids=(history.ids[index],))
    elif finding.call_ids or finding.kind in _UNSUPPORTED_KINDS:
        raise FastPathUnsupportedError
    else:
        yield finding


def _join_content(content: Content) -> str:
    return join_texts([content] if isinstance(content, str) else content)

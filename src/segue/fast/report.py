"""The report of a conversation from that of its minimal conversation, which has the same kinds of findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.fast_history import FastPathUnsupportedError
from segue.fast.progress import Progress
from segue.render.chained_report import ID_LISTS
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


class ConversationReport(Report):
    """The report that the full pipeline would have made on a conversation, built on first access.

    `keeps_order`: results are sent in the order of the body.
    """

    def __init__(self, progress: Progress, template: ReportTemplate, *, keeps_order: bool) -> None:
        self.target, self.id_scheme, self.model = template.target, template.id_scheme, template.model
        self.tool_format = template.tool_format
        self.stage = ()
        self._findings = None
        self._progress = progress
        self._template = template
        self._keeps_order = keeps_order

    def __getattr__(self, name: str) -> Any:
        if name not in (*ID_LISTS, "_places", "_stages"):
            raise AttributeError(name)
        progress = self._progress
        if name == "seen":
            self.seen = progress.ids.copy()
        elif name == "emitted_calls":
            self.emitted_calls = list(zip(progress.ids, progress.sent_ids, strict=True))
        elif name == "emitted_results":
            calls = list(zip(progress.ids, progress.sent_ids, strict=True))
            order = progress.result_order if self._keeps_order else None
            self.emitted_results = calls if order is None else [calls[index] for index in order]
        else:
            self._places, self._stages = {}, {}
            self.extend([found for item in self._template.findings for found in _derive_findings(item, progress)])
        return self.__dict__[name]


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

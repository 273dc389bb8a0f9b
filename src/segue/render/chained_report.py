"""`ChainedReport`: the reports on the parts of a conversation that were rendered one after the other, as one report."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from segue.render.report import Report

ID_LISTS = ("seen", "emitted_calls", "emitted_results")
"""The lists of a report with one entry for each call or result."""


class ChainedReport(Report):
    """A sequence of reports, joined on first access."""

    def __init__(self, parts: Sequence[Report]) -> None:
        last = parts[-1]
        self.target, self.id_scheme, self.model = last.target, last.id_scheme, last.model
        self.tool_format = last.tool_format
        self.size = sum(map(_report_size, parts))
        self._parts = parts
        self._findings = None
        self.stage = last.stage

    def __getattr__(self, name: str) -> Any:
        if name in ID_LISTS:
            setattr(self, name, [entry for part in self._parts for entry in getattr(part, name)])
        elif name in ("_places", "_stages"):
            self._join_findings()
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def _join_findings(self) -> None:
        """Join the findings of all parts, in the order of their stages."""
        self._places, self._stages = {}, {}
        last_stage = self.stage
        added = [(part.stages[finding.key], finding) for part in self._parts for finding in part.findings]
        for self.stage, finding in sorted(added, key=itemgetter(0)):
            self.extend([finding])
        self.stage = last_stage


def append_report(reports: tuple[Report, ...], new: Report) -> tuple[Report, ...]:
    """Append a report. Reports are joined as they grow, so that there are always few."""
    while reports and _report_size(reports[-1]) <= _report_size(new):
        new = ChainedReport((reports[-1], new))
        reports = reports[:-1]
    return (*reports, new)


def _report_size(report: Report) -> int:
    return report.size if isinstance(report, ChainedReport) else 1

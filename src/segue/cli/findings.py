"""Findings of a report as lines on stderr: what was lost and what was changed; notes only on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from segue.cli import streams
from segue.errors import format_count

if TYPE_CHECKING:
    from segue.render.report import Finding, Report


def select_findings(report: Report, *, verbose: bool) -> list[Finding]:
    """Return the findings to print: all, or all but notes."""
    return [finding for finding in report.findings if verbose or finding.level != "note"]


def format_finding(finding: Finding, *, details: bool = False) -> str:
    """Return level, message and calls of a finding; with `details` also kind and subject."""
    if not details:
        return str(finding)
    about = f" ({finding.subject})" if finding.subject else ""
    return str(finding).replace(": ", f": {finding.kind}{about}: ", 1)


def format_levels(levels: Iterable[str]) -> str:
    """Return the number of findings of each level: `2 lost, 1 changed, 3 notes`."""
    counts = Counter(levels)
    notes = format_count(counts["note"], "note")
    parts = [f"{counts[level]:,} {level}" for level in ("lost", "changed") if counts[level]]
    return ", ".join([*parts, notes] if counts["note"] else parts) or "no findings"


def print_findings(report: Report, *, verbose: bool) -> None:
    """Print a line for each finding."""
    for finding in select_findings(report, verbose=verbose):
        streams.print_message(format_finding(finding))

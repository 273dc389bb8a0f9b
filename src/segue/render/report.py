"""The report: what was decided on the way to a body, and whose fault each thing was.

Append-only and always on. A finding is built from plain values, so the whole report is JSON at any time.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["Fault", "Finding", "Kind", "Report"]

Fault = Literal["canonical", "rendering", "projection"]
Kind = Literal[
    "adjusted",  # an option was changed
    "argument",  # arguments were wrapped to fit the target
    "compressed",  # a message was shortened, summarised or dropped to save space
    "dedupe",  # one of several completions was left out
    "dropped",  # content that the target can't have was left out
    "id",  # the provider's own id of a call could not stay
    "inserted",  # a bridge, head or tail was put in
    "model",  # the model's name was left out
    "moved",  # content went to another place
    "name",  # a tool's name was projected
    "orphan",  # a result without a call
    "reasoning",  # reasoning was kept back or told as text
    "reordered",  # results were brought to their calls
    "supplied",  # the ledger gave the missing side of an interaction
    "surrogate",  # half a character became U+FFFD
    "synthetic",  # a completion was made up
    "text",  # content was told as text
    "tools",  # tool declarations were changed
]
_FAULTS: dict[Kind, Fault] = {
    "compressed": "canonical",
    "dedupe": "canonical",
    "orphan": "canonical",
    "supplied": "canonical",
    "surrogate": "canonical",
    "synthetic": "canonical",
    "adjusted": "projection",
    "argument": "projection",
    "id": "canonical",
    "model": "projection",
    "name": "projection",
    "tools": "projection",
}


class Finding(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One decision. `call_id` is canonical; `subject` names what else it is about (a tool, an option, a block)."""

    kind: Kind
    fault: Fault
    message: str
    call_id: str | None = None
    subject: str | None = None


class Report:
    """What one render did. `seen` holds canonical ids, `emitted_*` pairs of canonical and wire id."""

    def __init__(self, *, target: str = "", id_scheme: str = "", model: str | None = None) -> None:
        self.target = target
        self.id_scheme = id_scheme
        self.model = model
        self.seen: list[str] = []
        self.emitted_calls: list[tuple[str, str]] = []
        self.emitted_results: list[tuple[str, str]] = []
        self.findings: list[Finding] = []

    def add(
        self,
        kind: Kind,
        message: str,
        *,
        call_id: str | None = None,
        subject: str | None = None,
        fault: Fault | None = None,
    ) -> None:
        """Writes one decision down. The fault is the kind's usual one unless said otherwise."""
        self.findings.append(Finding(kind, fault or _FAULTS.get(kind, "rendering"), message, call_id, subject))

    def of(self, *kinds: Kind) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind in kinds]

    def to_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "model": self.model,
            "id_scheme": self.id_scheme,
            "seen": list(self.seen),
            "emitted_calls": [list(pair) for pair in self.emitted_calls],
            "emitted_results": [list(pair) for pair in self.emitted_results],
            "findings": [msgspec.to_builtins(finding) for finding in self.findings],
        }

    def __repr__(self) -> str:
        return f"Report(target={self.target!r}, calls={len(self.emitted_calls)}, findings={len(self.findings)})"

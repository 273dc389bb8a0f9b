"""The report of a conversion: what was changed or dropped, why, and which layer caused it.

Findings hold plain values only, so a report can always be encoded as JSON.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Fault = Literal["canonical", "rendering", "projection"]
FindingKind = Literal[
    "adjusted",  # an option was changed
    "argument",  # arguments were wrapped to fit the target
    "compressed",  # a message was shortened, summarised or dropped to save space
    "dedupe",  # one of several results of a call was dropped
    "dropped",  # content that the target does not accept was dropped
    "id",  # the provider's own id of a call could not be kept
    "inserted",  # a filler, first or last message was inserted
    "model",  # the model's name was dropped
    "moved",  # content was moved
    "name",  # a tool's name was projected
    "orphan",  # a result without a call
    "reasoning",  # reasoning was dropped or rendered as text
    "reordered",  # results were moved to their calls
    "supplied",  # a missing call or result was restored from the conversation
    "surrogate",  # a lone surrogate became U+FFFD
    "synthetic",  # a synthetic result was added
    "text",  # content was rendered as text
    "tools",  # tool declarations were changed
]
_DEFAULT_FAULTS: dict[FindingKind, Fault] = {
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
    """One change. `call_id` is canonical; `subject` is the name of the tool, option or block, or the dropped text."""

    kind: FindingKind
    fault: Fault
    message: str
    call_id: str | None = None
    subject: str | None = None


class Report:
    """The findings of one conversion. `seen` are the canonical ids of all calls in the source.

    `emitted_calls` and `emitted_results` are pairs of canonical and projected id, for each call and result in the body.
    """

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
        kind: FindingKind,
        message: str,
        *,
        call_id: str | None = None,
        subject: str | None = None,
        fault: Fault | None = None,
    ) -> None:
        """Add a finding. `fault` defaults to the usual one of the kind."""
        self.findings.append(Finding(kind, fault or _DEFAULT_FAULTS.get(kind, "rendering"), message, call_id, subject))

    def findings_of(self, *kinds: FindingKind) -> list[Finding]:
        """Return the findings of these kinds."""
        return [finding for finding in self.findings if finding.kind in kinds]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
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

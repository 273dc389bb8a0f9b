"""The report of a conversion: what was changed or dropped, why, and which layer caused it.

Findings hold plain values only, so a report can always be encoded as JSON. No two differ only in call ids and paths.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from enum import IntEnum, auto
from operator import itemgetter
from typing import Any, Literal, get_args

import msgspec

from segue.errors import shorten_message

Fault = Literal["canonical", "rendering", "projection"]
Level = Literal[
    "lost",  # content or an option that the user set does not reach the target
    "changed",  # it reaches the target in another form
    "note",  # nothing that the user set: transport and caching fields, placeholders
]
FindingKind = Literal[
    "adjusted",  # an option was changed
    "argument",  # arguments were wrapped to fit the target
    "compressed",  # a message was shortened, summarised or dropped to save space
    "dedupe",  # one of several results of a call was dropped
    "dropped",  # content that the target does not accept was dropped
    "id",  # the provider's own id of a call is missing or could not be kept
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
_LEVELS: tuple[Level, ...] = get_args(Level)
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
_DEFAULT_LEVELS: dict[FindingKind, Level] = {"dedupe": "lost", "dropped": "lost", "model": "lost", "reasoning": "lost"}
# Fields of transport, caching and accounting, and those that select what a reply discloses besides the answer.
_NOTE_FIELDS = frozenset(
    {
        "anthropic_beta",
        "anthropic_version",
        "betas",
        "cachePoint",
        "cache_control",
        "client_metadata",
        "defer_loading",
        "eager_input_streaming",
        "include",
        "labels",
        "metadata",
        "prompt_cache_breakpoint",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "requestMetadata",
        "safety_identifier",
        "store",
        "stream",
        "stream_options",
        "user",
    }
)


def field_level(path: str) -> Level:
    """Return the level of a dropped field, given by its path or its last name."""
    return "lost" if _NOTE_FIELDS.isdisjoint((path, path.rpartition(".")[2])) else "note"


class Finding(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True, omit_defaults=True):
    """One change. `call_ids` are canonical; `subject` is the name of the tool, option or block, or the dropped text.

    `paths` are the places in the source body, where they are known.
    """

    kind: FindingKind
    level: Level
    fault: Fault
    message: str
    subject: str | None = None
    call_ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return level, message and calls."""
        calls = self.call_ids
        suffix = f" [{calls[0]}]" if len(calls) == 1 else f" × {len(calls):,}" if calls else ""
        return f"{self.level}: {self.message}{suffix}"

    @property
    def key(self) -> Finding:
        """The finding without its call ids and paths: findings with equal keys are merged."""
        return msgspec.structs.replace(self, call_ids=(), paths=()) if self.call_ids or self.paths else self


class Step(IntEnum):
    """The steps of a conversion that add findings, in order."""

    TOOLS = auto()
    PASSES = auto()
    BODY_FIELDS = auto()
    MESSAGE_NAMES = auto()
    SPECIAL_TEXTS = auto()
    ITEM_FIELDS = auto()
    TOOL_FIELDS = auto()
    TEXT_FORMAT = auto()
    PASSES_AS_TEXT = auto()
    BODY = auto()
    CALLS = auto()
    MIXED = auto()
    NAMES = auto()
    PARAMETERS = auto()
    REPLY = auto()


Stage = tuple[int | str, ...]
"""A step, and a part of it. Stages are passed in ascending order, each over all messages."""
IN_CALL_ORDER: Stage = (Step.CALLS,)
"""The stage that reports on one call after the other."""


class Report:
    """The findings of one conversion. `seen` are the canonical ids of all calls in the source.

    `emitted_calls` and `emitted_results` are pairs of canonical and projected id, for each call and result in the body.
    `stage` is the step of the conversion that adds findings now.
    """

    def __init__(
        self, *, target: str = "", id_scheme: str = "", tool_format: str = "", model: str | None = None
    ) -> None:
        self.target = target
        self.id_scheme = id_scheme
        self.tool_format = tool_format
        self.model = model
        self.stage: Stage = ()
        self.seen: list[str] = []
        self.emitted_calls: list[tuple[str, str]] = []
        self.emitted_results: list[tuple[str, str]] = []
        # The call ids and paths of each finding, by its key: sets that keep their order.
        self._places: dict[Finding, tuple[dict[str, None], dict[str, None]]] = {}
        # The stage that each finding was first added in.
        self._stages: dict[Finding, Stage] = {}
        # The findings on options that were dropped.
        self._drops: set[Finding] = set()
        self._findings: list[Finding] | None = None

    @property
    def findings(self) -> list[Finding]:
        """The findings in the order of their first occurrence."""
        if self._findings is None:
            self._findings = [
                msgspec.structs.replace(key, call_ids=tuple(call_ids), paths=tuple(paths))
                for key, (call_ids, paths) in self._places.items()
            ]
        return self._findings

    def copy(self) -> Report:
        copied = Report(target=self.target, id_scheme=self.id_scheme, tool_format=self.tool_format, model=self.model)
        copied.seen = self.seen.copy()
        copied.emitted_calls, copied.emitted_results = self.emitted_calls.copy(), self.emitted_results.copy()
        copied.stage = self.stage
        copied._places = {key: (ids.copy(), paths.copy()) for key, (ids, paths) in self._places.items()}
        copied._stages = self._stages.copy()
        copied._drops = self._drops.copy()
        return copied

    @property
    def stages(self) -> Mapping[Finding, Stage]:
        """The keys of all findings, each with the stage that it was first added in."""
        return self._stages

    @property
    def drops(self) -> Set[Finding]:
        """The keys of the findings on options that were dropped."""
        return self._drops

    def add(
        self,
        kind: FindingKind,
        message: str,
        *,
        call_id: str | None = None,
        path: str | None = None,
        subject: str | None = None,
        fault: Fault | None = None,
        level: Level | None = None,
        is_drop: bool = False,
    ) -> None:
        """Add a finding. `fault` and `level` default to the usual ones of the kind; `subject` is never shortened.

        If an option is dropped (`is_drop`), earlier changes of its value are not reported.
        """
        fault = fault or _DEFAULT_FAULTS.get(kind, "rendering")
        level = level or _DEFAULT_LEVELS.get(kind, "changed")
        key = Finding(kind, level, fault, shorten_message(message), subject)
        call_ids, paths = self._find_places(key)
        if call_id is not None:
            call_ids[call_id] = None
        if path is not None:
            paths[path] = None
        if is_drop:
            self._replace_changes(key)
        self._findings = None

    def extend(self, findings: Iterable[Finding], *, drops: Container[Finding] = ()) -> None:
        """Add findings; one that differs from another only in call ids and paths is merged into it.

        Those in `drops` replace earlier changes of the same option.
        """
        for finding in findings:
            key = finding.key
            call_ids, paths = self._find_places(key)
            if key in drops:
                self._replace_changes(key)
            call_ids.update(dict.fromkeys(finding.call_ids))
            paths.update(dict.fromkeys(finding.paths))
        self._findings = None

    def _find_places(self, key: Finding) -> tuple[dict[str, None], dict[str, None]]:
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = {}, {}
            self._stages[key] = self.stage
        return places

    def _replace_changes(self, key: Finding) -> None:
        """Remove the earlier changes of an option that is dropped."""
        self._drops.add(key)
        for other in [*self._places]:
            if (other.kind, other.fault, other.subject) == (key.kind, key.fault, key.subject) and other != key:
                del self._places[other], self._stages[other]

    def findings_of(self, *kinds: FindingKind) -> list[Finding]:
        """Return the findings of these kinds."""
        return [finding for finding in self.findings if finding.kind in kinds]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "target": self.target,
            "model": self.model,
            "id_scheme": self.id_scheme,
            "tool_format": self.tool_format,
            "seen": list(self.seen),
            "emitted_calls": [list(pair) for pair in self.emitted_calls],
            "emitted_results": [list(pair) for pair in self.emitted_results],
            "findings": msgspec.json.decode(msgspec.json.encode(self.findings)),
        }

    def __str__(self) -> str:
        """Return a line for each finding: first those of lost content, then the changes, then the notes."""
        return "\n".join(map(str, sorted(self.findings, key=lambda finding: _LEVELS.index(finding.level)))) or (
            "no findings"
        )

    def __repr__(self) -> str:
        return f"Report(target={self.target!r}, calls={len(self.emitted_calls)}, findings={len(self.findings)})"


_ID_LISTS = ("seen", "emitted_calls", "emitted_results")
# The lists of a report with one entry for each call or result.


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
        if name in _ID_LISTS:
            setattr(self, name, [entry for part in self._parts for entry in getattr(part, name)])
        elif name in ("_places", "_stages", "_drops"):
            self._join_findings()
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def _join_findings(self) -> None:
        """Join the findings of all parts, in the order of their stages."""
        self._places, self._stages, self._drops = {}, {}, set()
        last_stage = self.stage
        added = [(part.stages[finding.key], finding, part.drops) for part in self._parts for finding in part.findings]
        for self.stage, finding, drops in sorted(added, key=itemgetter(0)):
            self.extend([finding], drops=drops)
        self.stage = last_stage


def append_report(reports: tuple[Report, ...], new: Report) -> tuple[Report, ...]:
    """Append a report. Reports are joined as they grow, so that there are always few."""
    while reports and _report_size(reports[-1]) <= _report_size(new):
        new = ChainedReport((reports[-1], new))
        reports = reports[:-1]
    return (*reports, new)


def _report_size(report: Report) -> int:
    return report.size if isinstance(report, ChainedReport) else 1

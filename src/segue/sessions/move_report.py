"""`MoveReport`: what a move carried, changed and lost, with counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Media, Thinking, ToolCall, ToolResponse
from segue.sessions.client import REASONING_REMOVED, Client
from segue.sessions.rendering import Rendering
from segue.sessions.session import Session, SessionMessage

Action = Literal[
    "created",  # a new session was written
    "extended",  # new turns were appended to the session that it came from
    "copied",  # that session has changed or is open: a new one continues it from where it was
    "unchanged",  # the session was there already
]
NOT_MOVED = "system prompts and tool declarations, which are those of the client that resumes the session"
# Findings that apply to requests only.
_REQUEST_KINDS = frozenset({"adjusted", "model", "tools"})
# Options of a request on its content: the resolution at which a model gets a picture.
_REQUEST_FIELDS = frozenset({"detail"})
_TARGET = re.compile(r"\bthe target\b|(?<=\bnot supported by )[\w-]+$")


class ReportLine(Struct, frozen=True):
    """One fact and how often it occurs."""

    text: str
    count: int


class MoveReport(Struct, frozen=True):
    """The facts of a move. `carried`, `changed` and `lost` are about the messages that this move wrote.

    `original` is the reason why the session that it came from is continued in a copy, with its id. `warnings` and
    `notes` are about the clients, not about the content.
    """

    action: Action
    carried: tuple[ReportLine, ...] = ()
    changed: tuple[ReportLine, ...] = ()
    lost: tuple[ReportLine, ...] = ()
    original: str | None = None
    not_moved: str = NOT_MOVED
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)


def build_report(source: Session, target: Client, action: Action, rendering: Rendering | None) -> MoveReport:
    """Build the report of a planned move."""
    dropped = [ReportLine(what, count) for what, count in source.log.dropped.items() if count]
    if rendering is None:
        return MoveReport(action, lost=tuple(dropped))
    changed = [
        ReportLine(f"tool {old} became {new}" if old != new else f"arguments of {old} translated", count)
        for (old, new), count in rendering.renamed.items()
    ]
    changed += [
        ReportLine(f"tool {name} kept: {target.title} has no counterpart", n) for name, n in rendering.kept.items()
    ]
    lost: list[ReportLine] = []
    for finding in rendering.findings:
        if finding.kind in _REQUEST_KINDS or finding.subject in _REQUEST_FIELDS or finding.level == "note":
            continue
        # The renderer has the name of the API, which several clients use.
        line = ReportLine(_TARGET.sub(target.title, finding.message), max(1, len(finding.call_ids)))
        if finding.kind == "reasoning":
            continue
        if finding.level == "lost":
            lost.append(line)
        else:
            changed.append(line)
    if any(finding.kind == "reasoning" and finding.level != "note" for finding in rendering.findings):
        lost.append(ReportLine(REASONING_REMOVED, _count_thoughts(rendering.entries, target)))
    if rendering.envelopes:
        lost.append(ReportLine("reasoning sealed by segue's gateway removed", rendering.envelopes))
    lost += [ReportLine(what, count) for what, count in rendering.removed.items()]
    synthetic = sum(item.synthetic for item in rendering.items)
    if synthetic:
        changed.append(ReportLine("text added at the end, where the last reply is missing", synthetic))
    return MoveReport(action, tuple(_count(rendering.entries)), tuple(changed), tuple(lost + dropped))


def _count(entries: Sequence[SessionMessage]) -> list[ReportLine]:
    counts: Counter[str] = Counter()
    for entry in entries:
        counts["messages"] += 1
        for block in entry.message.blocks:
            match block:
                case ToolCall():
                    counts["tool calls"] += 1
                case ToolResponse():
                    counts["results"] += 1
                    counts["pictures and files"] += sum(isinstance(part, Media) for part in block.content or ())
                case Media():
                    counts["pictures and files"] += 1
                case _:
                    continue
    return [ReportLine(what, count) for what, count in counts.items() if count]


def _count_thoughts(entries: Sequence[SessionMessage], target: Client) -> int:
    return sum(
        isinstance(block, Thinking)
        for entry in entries
        if entry.client != target.name
        for block in entry.message.blocks
    )

"""What wires share when they hand a reply to a client: what became of it elsewhere and can't stand in it."""

from __future__ import annotations

from segue.canonical.blocks import Block, Media, Text, ToolCall, ToolResponse
from segue.render.demands import TEXTS
from segue.render.report import Report

__all__ = ["as_words", "is_own", "is_own_hosted", "ran_elsewhere", "report_others"]


def is_own(block: Block, api: str) -> bool:
    """Whether this API wrote the block, and its fragment still says everything."""
    return block.native is not None and block.native.intact and block.native.api == api


def is_own_hosted(block: Block, api: str) -> bool:
    return _is_hosted(block) and is_own(block, api)


def ran_elsewhere(block: Block, api: str, report: Report) -> bool:
    """Whether another provider ran this, so that no client of the API can do anything with it; then it is reported."""
    if not _is_hosted(block) or is_own(block, api):
        return False
    tool = block.name if isinstance(block, ToolCall | ToolResponse) else None
    report.add("dropped", f"{tool or 'a tool'}, which another provider ran, is left out", subject=tool)
    return True


def report_others(count: int, report: Report) -> None:
    """Says of how many more answers nothing is brought back."""
    if count > 0:
        report.add("dropped", f"{count} more answers: only the first is brought back", subject="choices")


def _is_hosted(block: Block) -> bool:
    """In a reply every result is one that a provider gave."""
    return (isinstance(block, ToolCall) and block.kind == "hosted") or isinstance(block, ToolResponse)


def as_words(block: Block, api: str, report: Report) -> Block:
    """The block; of media from elsewhere, for which a reply of the API has no place, what can be said in words."""
    if not isinstance(block, Media) or is_own(block, api):
        return block
    report.add("text", f"{block.kind} can't stand in a reply here: told as text", subject=block.kind)
    said = (TEXTS.unsupported.format(kind=block.kind), block.name, block.url)
    return Text(" ".join(word for word in said if word))

"""The strategy `truncate-results`: shortens old results; head and tail are kept, with a note of what was cut."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Media, Shortening, ShortenReason, Text, ToolResponse, edit_block, join_texts
from segue.canonical.compress.plan import Plan
from segue.canonical.json import encode_json_text
from segue.canonical.placeholders import CUT_NOTE, CUT_PATTERN, MEDIA_REMOVED, REMOVED, is_note

# How many characters of a result are kept, step by step. At the end only the placeholder is left.
LIMITS = (4000, 1000, 200, 0)
# From this limit on media are replaced by a placeholder.
_MEDIA_LIMIT = 1000
# A cut must save more than the length of its note.
_MIN_SAVING = 80
# The newest turns, which the model is working on: their results are shortened last, and never removed.
_NEWEST_TURNS = 2


def truncate_results(plan: Plan, budget: int) -> str:
    """Shorten results step by step, oldest first; those of the newest turns after all others are at the minimum."""
    for indexes, limits in _shortening_order(plan):
        for limit in limits:
            results = ((index, response) for index in indexes for response in plan.shortenable_results(index))
            plan.shorten(((index, (response, shorten_result(response, limit))) for index, response in results), budget)
    return "every result is as short as possible"


def _shortening_order(plan: Plan) -> list[tuple[list[int], tuple[int, ...]]]:
    """Return the messages with results, and their limits: all of older turns, then the newest turns one by one."""
    indexes_of_turns = [
        indexes
        for group in sorted(plan.groups, key=lambda group: group.indexes[0])
        if (indexes := [index for index in group.indexes if plan.shortenable_results(index)])
    ]
    older = [index for indexes in indexes_of_turns[:-_NEWEST_TURNS] for index in indexes]
    return [(older, LIMITS), *((indexes, LIMITS[:-1]) for indexes in indexes_of_turns[-_NEWEST_TURNS:])]


def shorten_result(response: ToolResponse, allowance: int) -> ToolResponse:
    """Return the result with at most `allowance` characters; the same object if that saves nothing."""
    content = response.content or ()
    text = join_texts(block.text for block in content if isinstance(block, Text))
    if not text and not isinstance(response.structured, UnsetType):
        text = encode_json_text(response.structured)
    others = tuple(block for block in content if not isinstance(block, Text))
    if is_note(response) and not others:
        return response
    if not allowance:
        saves = others or len(text) > len(REMOVED)
        return _edit_result(response, (Text(REMOVED),), "removed") if saves else response
    kept = tuple(_replace_media(block) for block in others) if allowance <= _MEDIA_LIMIT else others
    shorter = cut_text(text, allowance)
    if shorter == text and kept == others:
        return response
    return _edit_result(response, (Text(shorter), *kept) if shorter else kept, "cut")


def _edit_result(response: ToolResponse, content: tuple[Block, ...], reason: ShortenReason) -> ToolResponse:
    return edit_block(response, content=content, structured=UNSET, shortened=Shortening(reason))


def _replace_media(block: Block) -> Block:
    return Text(MEDIA_REMOVED.format(kind=block.kind)) if isinstance(block, Media) else block


def cut_text(text: str, allowance: int) -> str:
    """Return head and tail of a text with a note of how much is missing. A text that was cut before is cut further."""
    match = CUT_PATTERN.search(text)
    head, tail = (text[: match.start()], text[match.end() :]) if match is not None else (text, "")
    missing = int(match[1].replace(",", "")) if match is not None else 0
    surplus = len(head) + len(tail) - allowance
    if surplus <= (0 if match is not None else _MIN_SAVING):
        return text
    head_length = allowance * 2 // 3
    if match is None:
        head, tail = text[:head_length], text[len(text) - (allowance - head_length) :]
    else:
        head, tail = head[:head_length], tail[max(0, len(tail) - (allowance - head_length)) :]
        surplus = len(text) - len(match[0]) - len(head) - len(tail)
    return head + CUT_NOTE.format(count=missing + surplus) + tail

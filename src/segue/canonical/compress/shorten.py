"""The strategy `truncate-results`: shortens old results; head and tail are kept, with a note of what was cut."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import Block, Media, Text, ToolResponse, edit_block, join_texts
from segue.canonical.compress.placeholders import CUT_NOTE, CUT_PATTERN, MEDIA_REMOVED, REMOVED, is_placeholder
from segue.canonical.compress.plan import Plan
from segue.canonical.json import encode_json_text

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
    for results, limits in _shortening_order(plan):
        for limit in limits:
            for position, (index, response) in enumerate(results):
                if plan.total <= budget:
                    return ""
                shorter = shorten_result(response, limit)
                if plan.shorten(index, response, shorter):
                    results[position] = index, shorter
    return "every result is as short as possible"


def _shortening_order(plan: Plan) -> list[tuple[list[tuple[int, ToolResponse]], tuple[int, ...]]]:
    """Return batches of results with their limits: those of all older turns, then the newest turns one by one."""
    turn_of = {index: group.indexes[0] for group in plan.groups for index in group.indexes}
    turns: dict[int, list[tuple[int, ToolResponse]]] = {}
    for index, response in plan.shortenable_results():
        turns.setdefault(turn_of[index], []).append((index, response))
    ordered = [turns[turn] for turn in sorted(turns)]
    older = [result for turn in ordered[:-_NEWEST_TURNS] for result in turn]
    return [(older, LIMITS), *((turn, LIMITS[:-1]) for turn in ordered[-_NEWEST_TURNS:])]


def shorten_result(response: ToolResponse, allowance: int) -> ToolResponse:
    """Return the result with at most `allowance` characters; the same object if that saves nothing."""
    content = response.content or ()
    text = join_texts(block.text for block in content if isinstance(block, Text))
    if not text and not isinstance(response.structured, UnsetType):
        text = encode_json_text(response.structured)
    others = tuple(block for block in content if not isinstance(block, Text))
    if is_placeholder(text) and not others:
        return response
    if not allowance:
        saves = others or len(text) > len(REMOVED)
        return edit_block(response, content=(Text(REMOVED),), structured=UNSET) if saves else response
    kept = tuple(_replace_media(block) for block in others) if allowance <= _MEDIA_LIMIT else others
    shorter = cut_text(text, allowance)
    if shorter == text and kept == others:
        return response
    return edit_block(response, content=(Text(shorter), *kept) if shorter else kept, structured=UNSET)


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

"""The cells of the table: every client with every provider, and every misbehaviour with two providers a client."""

from __future__ import annotations

from tests.clients.rows import CHANGED_MODELS, CLIENT_ROWS, UPSTREAMS
from tests.clients.run import Cell
from tests.clients.task import MISBEHAVIOURS, PLAIN

_SEEING = ("anthropic", "openai-chat", "gemini", "bedrock", "openai-responses")
# Calls in text are those of one vendor's models.
_TEXT_CALLS = {"kimi-text": "kimi", "deepseek-text": "deepseek"}


def list_cells() -> list[Cell]:
    """Return all cells: plain ones, then each misbehaviour with one provider a client, then with a second one."""
    plain = [Cell(client, upstream) for upstream in UPSTREAMS for client in CLIENT_ROWS]
    names = [name for name in MISBEHAVIOURS if name != PLAIN]
    misbehaving = [
        Cell(client, _pick_upstream(name, place + index, second), name)
        for second in (0, 1)
        for index, name in enumerate(names)
        for place, client in enumerate(CLIENT_ROWS)
        if is_possible(client, name)
    ]
    return [*plain, *dict.fromkeys(misbehaving)]


def is_possible(client: str, misbehaviour: str) -> bool:
    """Return whether a client can be run so: programs in free text read no pictures."""
    row, task = CLIENT_ROWS[client], MISBEHAVIOURS[misbehaviour]
    if row.tasks and misbehaviour not in row.tasks:
        return False
    return not (row.wraps_commands and task.has_picture) and not (row.server is None and task.has_server)


def _pick_upstream(misbehaviour: str, number: int, second: int) -> str:
    """Pick a provider so that clients, misbehaviours and providers meet in many pairs.

    The ten providers take turns; the second is far from the first. Pictures need models that accept them.
    """
    if misbehaviour in _TEXT_CALLS:
        return _TEXT_CALLS[misbehaviour]
    if MISBEHAVIOURS[misbehaviour].changes_model or MISBEHAVIOURS[misbehaviour].restarts:
        return list(CHANGED_MODELS)[second]
    if MISBEHAVIOURS[misbehaviour].has_picture:
        return _SEEING[(number + second) % len(_SEEING)]
    upstreams = list(UPSTREAMS)
    return upstreams[(number * 3 + second * 5) % len(upstreams)]

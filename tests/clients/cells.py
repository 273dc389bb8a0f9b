"""The cells of the table: every client with every provider, and every misbehaviour with two providers a client."""

from __future__ import annotations

from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import Cell
from tests.clients.task import MISBEHAVIOURS, PLAIN

_TEXT_CALLS, _PICTURE = "calls-as-text", "picture"
_SEEING = ("anthropic", "openai-chat", "gemini", "bedrock", "openai-responses")


def list_cells() -> list[Cell]:
    """Return all cells: plain ones, then each misbehaviour with one provider a client, then with a second one."""
    plain = [Cell(client, upstream) for upstream in UPSTREAMS for client in CLIENT_ROWS]
    names = [name for name in MISBEHAVIOURS if name != PLAIN]
    misbehaving = [
        Cell(client, _pick_upstream(name, place + index, second), name)
        for second in (0, 1)
        for index, name in enumerate(names)
        for place, client in enumerate(CLIENT_ROWS)
        # Names in a namespace are changed for Kimi: a call in its text can't be written in advance. Programs in free
        # text have no tool for pictures.
        if not (name in (_TEXT_CALLS, _PICTURE) and CLIENT_ROWS[client].wraps_commands)
    ]
    return [*plain, *dict.fromkeys(misbehaving)]


def _pick_upstream(misbehaviour: str, number: int, second: int) -> str:
    """Pick a provider so that clients, misbehaviours and providers meet in many pairs.

    The ten providers take turns; the second is far from the first. Calls in text are those of Kimi's models. Pictures
    need models that accept them.
    """
    if misbehaviour == _TEXT_CALLS:
        return "kimi"
    if misbehaviour == _PICTURE:
        return _SEEING[(number + second) % len(_SEEING)]
    upstreams = list(UPSTREAMS)
    return upstreams[(number * 3 + second * 5) % len(upstreams)]

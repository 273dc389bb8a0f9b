"""Which of the stored messages of a session opencode sends: those that were not taken back, after the last compaction.

A compaction is a message of the user with a part `compaction`, and the reply to it, which is the summary. It may keep
the messages from `tail_start_id` on, which then follow the summary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from segue.sessions.any_provider import objects_of
from segue.sessions.values import object_of

Message = dict[str, Any]


def select_kept(messages: list[Message], revert: dict[str, Any]) -> list[Message]:
    """Return the messages before the one that the user took back. The client removes the others at the next prompt.

    If the user took back a part of a reply, the parts before it are kept.
    """
    at = _find(messages, lambda message: _id(message) == revert.get("messageID"))
    if at is None:
        return messages
    if not revert.get("partID"):
        return messages[:at]
    parts = objects_of(messages[at].get("parts"))
    end = next((number for number, part in enumerate(parts) if part.get("id") == revert["partID"]), len(parts))
    return [*messages[:at], {**messages[at], "parts": parts[:end]}]


def select_current(messages: list[Message]) -> list[Message]:
    """Return the messages from the last finished summary on, and after it those that the compaction kept."""
    current = messages[_find_start(messages) :]
    at = next((number for number in reversed(range(len(current))) if _tail_of(current[number])), None)
    if at is None:
        return current
    tail_id, compaction_id = _tail_of(current[at]), _id(current[at])
    tail = _find(current, lambda message: _id(message) == tail_id)
    summary = _find(current[at:], lambda message: _is_summary(message) and _parent(message) == compaction_id)
    if tail is None or tail >= at or summary is None:
        return current
    after = at + summary + 1
    return [*current[at:after], *current[tail:at], *current[after:]]


def _find_start(messages: list[Message]) -> int:
    """Return the place of the last finished compaction, or of the first message that it kept."""
    finished: set[object] = set()
    tail_id: object = None
    for number in reversed(range(len(messages))):
        message = messages[number]
        if tail_id is not None:
            if _id(message) == tail_id:
                return number
        elif _info(message).get("role") == "user":
            if _id(message) in finished and _compactions(message):
                tail_id = _tail_of(message)
                if tail_id in (None, _id(message)):
                    return number
        elif _is_summary(message) and _info(message).get("finish") and not _info(message).get("error"):
            finished.add(_parent(message))
    return 0


def _find(messages: list[Message], matches: Callable[[Message], bool]) -> int | None:
    return next((number for number, message in enumerate(messages) if matches(message)), None)


def _info(message: Message) -> dict[str, Any]:
    return object_of(message.get("info"))


def _id(message: Message) -> object:
    return _info(message).get("id")


def _parent(message: Message) -> object:
    return _info(message).get("parentID")


def _is_summary(message: Message) -> bool:
    return _info(message).get("role") == "assistant" and bool(_info(message).get("summary"))


def _compactions(message: Message) -> list[dict[str, Any]]:
    is_user = _info(message).get("role") == "user"
    return [part for part in objects_of(message.get("parts")) if is_user and part.get("type") == "compaction"]


def _tail_of(message: Message) -> object:
    """Return the id of the first message that a compaction kept; None if it kept none, or is not a compaction."""
    return next((part["tail_start_id"] for part in _compactions(message) if part.get("tail_start_id")), None)

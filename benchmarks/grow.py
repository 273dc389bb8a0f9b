"""Extends a recorded run with items of its own shapes: the same turns again, with new ids, paths and results.

python benchmarks/grow.py codex-on-anthropic --items 400                  the last request, with 400 items
python benchmarks/grow.py claude-on-anthropic --items 400 --bytes 1100000 longer results, 1.1 MB
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any

from _measure import decode, encode
from _runs import Run, conversation_key, load_runs

# The keys of ids in items of any API.
_ID_KEYS = frozenset({"id", "call_id", "tool_use_id", "tool_call_id"})
_PROJECT = "/home/user/project"
_MARKER = "cache_control"
_LINE = '  File "/home/user/project/walk.py", line 41, in walk\n    raise KeyError(f"no {name!r}")  # → see docs\n'


def grow(run: Run, *, items: int, size: int = 0, count: int = 1) -> list[bytes]:
    """Return the last `count` requests of the session when it has so many items.

    Results are lengthened until the last request has the size.
    """
    body = decode(run.requests[-1])
    key = conversation_key(body)
    conversation: list[Any] = body[key]
    turns = _split_turns(conversation[_first_reply(conversation) :])
    has_markers = _MARKER in str(conversation)
    ends = [len(conversation)]
    for number, turn in enumerate(itertools.cycle(turns)):
        if len(conversation) >= items:
            break
        conversation += [_renew(item, f"{number:04}") for item in turn]
        ends.append(len(conversation))
    missing = size - len(encode(body))
    if missing > 0:
        added = len(encode(_lengthen_results(conversation, _LINE))) - len(encode(conversation))
        conversation = _lengthen_results(conversation, _LINE * (missing // added + 1))
    requests: list[bytes] = []
    for end in ends[-count:]:
        sent = conversation[:end]
        requests.append(encode({**body, key: _move_marker(sent) if has_markers else sent}))
    return requests


def _first_reply(conversation: list[Any]) -> int:
    """Return the index of the first item that a model wrote."""
    return next(index for index, item in enumerate(conversation) if _is_reply(item))


def _is_reply(item: dict[str, Any]) -> bool:
    kind = item.get("type", "message")
    return item.get("role") in ("assistant", "model") or kind == "reasoning" or kind.endswith("_call")


def _is_result(item: dict[str, Any]) -> bool:
    if item.get("role") == "tool" or item.get("type", "").endswith("_output"):
        return True
    parts = item.get("content") or item.get("parts") or ()
    return any(
        "functionResponse" in part or part.get("type") == "tool_result" for part in parts if isinstance(part, dict)
    )


def _split_turns(items: list[Any]) -> list[list[Any]]:
    """Return the replies, each with the results and user messages that follow it. An unfinished last one is dropped."""
    turns: list[list[Any]] = []
    was_reply = False
    for item in items:
        is_reply = _is_reply(item)
        if is_reply and not was_reply:
            turns.append([])
        turns[-1].append(item)
        was_reply = is_reply
    return turns[:-1] if was_reply else turns


def _renew(value: Any, number: str) -> Any:
    """Return a copy with the number in every id and every path, without cache markers."""
    if isinstance(value, dict):
        return {
            key: item + number if key in _ID_KEYS and isinstance(item, str) else _renew(item, number)
            for key, item in value.items()
            if key != _MARKER
        }
    if isinstance(value, list):
        return [_renew(item, number) for item in value]
    return value.replace(_PROJECT, f"{_PROJECT}{number}") if isinstance(value, str) else value


def _lengthen_results(conversation: list[Any], text: str) -> list[Any]:
    return [_lengthen(item, text) if _is_result(item) else item for item in conversation]


def _lengthen(value: Any, text: str) -> Any:
    """Return a copy of a result with more text."""
    if isinstance(value, list):
        return [_lengthen(item, text) for item in value]
    for key in ("output", "content", "text", "parts", "functionResponse", "response"):
        if isinstance(value.get(key), str):
            return {**value, key: value[key] + text}
        if value.get(key):
            return {**value, key: _lengthen(value[key], text)}
    return value


def _move_marker(conversation: list[Any]) -> list[Any]:
    """Return the conversation with the cache marker on its last block only."""
    *_, last = moved = [_renew(item, "") for item in conversation]
    last["content"][-1][_MARKER] = {"type": "ephemeral"}
    return moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the name of a file in benchmarks/data, without its suffix")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--bytes", type=int, default=0)
    options = parser.parse_args()
    runs = [run for run in load_runs(options.run) if run.name == options.run]
    if not runs:
        parser.error(f"no run {options.run!r}; expected one of {', '.join(run.name for run in load_runs())}")
    sys.stdout.buffer.write(grow(runs[0], items=options.items, size=options.bytes)[-1] + b"\n")


if __name__ == "__main__":
    main()

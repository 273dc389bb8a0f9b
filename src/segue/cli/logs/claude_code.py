"""Claude Code's log of a session: `~/.claude/projects/…/SESSION.jsonl`.

Each line is an entry with the `uuid` of itself and of its parent; `user` and `assistant` entries hold a `message` of
Anthropic's. The entries are a tree, and what the client goes on from is one way through it:

- the way leads from the last entry up to the root; other branches were left behind when somebody went back;
- one reply stands on several lines, a block each, with the same `message.id`; where its calls ran in parallel, each
  result hangs below its own line, so that the way up from the last one misses the others;
- subagents (`isSidechain`) are conversations of their own;
- a `compact_boundary` begins anew with a summary, and with entries from before that it names.

What the client prints with `--output-format stream-json` has the same entries one after the other, without parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from segue.cli.logs.recorded import Line, Recorded, is_the_clients, title_of
from segue.errors import InputError

__all__ = ["API", "NAME", "is_line", "recorded"]

NAME = "Claude Code"
API = "anthropic"
_SPOKEN = ("user", "assistant")
_TITLES = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))


def is_line(line: Line) -> bool:
    value = line.value
    told = value.get("type") in _SPOKEN and isinstance(value.get("message"), dict)
    return told and not {"parentUuid", "sessionId", "session_id", "uuid"}.isdisjoint(value)


def recorded(lines: list[Line]) -> Recorded:
    """What the client would go on from."""
    spoken = [line for line in lines if is_line(line)]
    own = [line for line in spoken if not _is_aside(line)] or spoken
    counted = {"lines of subagents": len(spoken) - len(own)}
    boundary = max((line.number for line in lines if _is_boundary(line, own is spoken)), default=0)
    kept = _kept_over(lines, boundary)
    known = [line for line in own if line.number > boundary or line.value.get("uuid") in kept]
    counted["lines before the client's own compaction"] = len(own) - len(known)
    way = _way(lines, known, boundary, kept)
    counted["lines on branches that were left"] = len(known) - len(way)
    real = [line for line in way if not _is_the_clients(line)]
    counted["lines that no model wrote"] = len(way) - len(real)
    # The summary stands for what was there before it, and so before what was kept of that.
    ordered = sorted(real, key=lambda line: (not line.value.get("isCompactSummary"), line.number))
    return _body(ordered, _title(lines) or _opening(ordered, own), counted)


def _is_aside(line: Line) -> bool:
    return bool(line.value.get("isSidechain") or line.value.get("parent_tool_use_id"))


def _is_boundary(line: Line, aside: bool) -> bool:
    return line.value.get("subtype") == "compact_boundary" and (aside or not _is_aside(line))


def _kept_over(lines: list[Line], boundary: int) -> set[Any]:
    """The entries before a compaction that are still told after it."""
    about = next(
        (_object(line.value.get("compactMetadata")) for line in lines if line.number == boundary), _object(None)
    )
    kept = set(cast("list[Any]", _object(about.get("preservedMessages")).get("uuids") or []))
    segment = _object(about.get("preservedSegment"))
    parents = _parents(lines)
    at = segment.get("tailUuid")
    while at in parents and at not in kept:
        kept.add(at)
        at = parents[at] if at != segment.get("headUuid") else None
    return kept


def _way(lines: list[Line], known: list[Line], boundary: int, kept: set[Any]) -> list[Line]:
    """The entries on the way from the last one to its root, and what belongs to the same replies."""
    if not any("parentUuid" in line.value for line in known):
        return known
    # Other entries stand between those that are spoken.
    parents = _parents(line for line in lines if line.number > boundary or line.value.get("uuid") in kept)
    passed: set[Any] = set()
    at = known[-1].value.get("uuid")
    while at is not None and at not in passed:
        passed.add(at)
        at = parents.get(at)
    passed |= kept | {line.value.get("uuid") for line in known if line.value.get("isCompactSummary")}
    on_way = [line for line in known if line.value.get("uuid") in passed]
    # The same result may stand on the branches that were left too: the way has it already, then.
    answered = {name for line in on_way for name in _answers(line)}
    replies = {name for line in on_way if (name := _reply(line))}
    passed |= {line.value.get("uuid") for line in known if _reply(line) in replies}
    called = {
        block.get("id")
        for line in known
        if line.value.get("uuid") in passed
        for block in _blocks(line)
        if block.get("type") == "tool_use"
    }
    return [
        line
        for line in known
        if line.value.get("uuid") in passed
        or (line.value.get("parentUuid") in passed and not (called - answered).isdisjoint(_answers(line)))
    ]


def _parents(lines: Iterable[Line]) -> dict[Any, Any]:
    return {line.value["uuid"]: line.value.get("parentUuid") for line in lines if line.value.get("uuid")}


def _reply(line: Line) -> str | None:
    message = _object(line.value.get("message"))
    name = message.get("id")
    return name if line.value.get("type") == "assistant" and isinstance(name, str) else None


def _answers(line: Line) -> list[Any]:
    return [block.get("tool_use_id") for block in _blocks(line) if block.get("type") == "tool_result"]


def _is_the_clients(line: Line) -> bool:
    """An error that the client shows in the place of a reply."""
    message = _object(line.value.get("message"))
    return bool(line.value.get("isApiErrorMessage")) or message.get("model") == "<synthetic>"


def _body(lines: list[Line], title: str | None, counted: dict[str, int]) -> Recorded:
    if not lines:
        raise InputError("nothing was said in this session")
    messages: list[dict[str, Any]] = []
    numbers: list[int] = []
    times: list[int | None] = []
    replies: dict[str, tuple[dict[str, Any], int]] = {}
    seen: set[Any] = set()
    model = None
    for line in lines:
        uuid = line.value.get("uuid")
        if uuid is not None and uuid in seen:
            continue
        seen.add(uuid)
        said = _object(line.value["message"])
        model = said.get("model") or model
        name = _reply(line)
        if name in replies:
            message, place = replies[name]
            whole = cast("list[Any]", message["content"])
            whole += [block for block in _blocks(line) if not _is_there(block, whole)]
            times[place] = line.at or times[place]
            continue
        message = {"role": said.get("role", line.value["type"]), "content": said.get("content")}
        if name is not None:
            message["content"] = list(_blocks(line))
            replies[name] = message, len(messages)
        messages.append(message)
        numbers.append(line.number)
        times.append(line.at)
    body = {**({"model": model} if model else {}), "messages": messages}
    return Recorded("claude-code", body, API, title, numbers, counted, times)


def _is_there(block: Mapping[str, Any], blocks: list[Mapping[str, Any]]) -> bool:
    """Whether a call stands there already: a line may tell a reply so far once more."""
    if block.get("type") == "tool_use":
        return any(other.get("type") == "tool_use" and other.get("id") == block.get("id") for other in blocks)
    return block in blocks


def _blocks(line: Line) -> list[Mapping[str, Any]]:
    content = _object(line.value.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else []
    return [item for item in items if isinstance(item, dict)]


def _title(lines: list[Line]) -> str | None:
    """What the user called it, or else the client. A file may also have the titles of other sessions."""
    entries = {line.value.get("uuid") for line in lines} - {None}
    sessions = {line.value.get("sessionId") for line in lines if is_line(line)} - {None}
    for kind, key in _TITLES:
        named = [
            title
            for line in lines
            if line.value.get("type") == kind
            and ("sessionId" not in line.value or not sessions or line.value["sessionId"] in sessions)
            and ("leafUuid" not in line.value or line.value["leafUuid"] in entries)
            and isinstance(title := line.value.get(key), str)
            and title
        ]
        if named:
            return named[-1]
    return None


def _opening(told: list[Line], own: list[Line]) -> str | None:
    """The user's first words, where what is told does not begin with them."""
    first = next((line for line in told if line.value.get("type") == "user"), None)
    if first is None or _users_words(first):
        return None
    return next((title_of(words) for line in own if (words := _users_words(line))), None)


def _users_words(line: Line) -> str:
    """What the user said himself in an entry; nothing where the client speaks in his name."""
    if line.value.get("type") != "user" or line.value.get("isMeta") or line.value.get("isCompactSummary"):
        return ""
    texts = [block.get("text") for block in _blocks(line) if block.get("type") == "text"]
    said = [text for text in texts if isinstance(text, str) and not is_the_clients(text)]
    return "\n".join(said).strip()


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

"""Finds intents to act in the user's text: sub-agents, commands, to-dos, pages and file changes.

Nothing is changed or run unless the text asks for it explicitly and with all values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.emulator.model.file_names import find_paths, mask_paths
from segue.emulator.model.user_request import (
    BEFORE_COMMAND,
    QUESTION_START,
    QUOTED,
    QUOTED_TEXT,
    WRITE_VERB,
    Intent,
    UserRequest,
    matched_text,
    split_attachment,
)

__all__ = [
    "find_commands",
    "find_edits",
    "find_pages",
    "find_tasks",
    "find_todos",
    "find_writes",
    "mentions_task",
    "needs_change",
]

_TASK = re.compile(
    r"\b(?:sub-?agents?|delegate|another agent|an agent|task tool|tool task"
    r"|(?:use|call|start|spawn) (?:a |the )?task)\b",
    re.IGNORECASE,
)
_WORK = re.compile(r"\b(?:to|that|which|:)\s+(?P<work>.+)$", re.IGNORECASE | re.DOTALL)
_MODEL = re.compile(r"\b(?:with|on|model|using)\s+(?P<model>[a-z][\w-]*/[\w.:-]*\w)", re.IGNORECASE)


def find_tasks(ask: UserRequest) -> Iterator[Intent]:
    if not (found := _TASK.search(ask.masked)) or re.match(
        r"\s*(?:what|how|why|is|are|does)\b", ask.text, re.IGNORECASE
    ):
        return
    model = _MODEL.search(ask.text)
    words = ask.text if model is None else f"{ask.text[: model.start()]}{ask.text[model.end() :]}"
    work = _WORK.search(words[found.end() :] if model is None else words)
    prompt = " ".join((work["work"] if work else words).split()).rstrip(".")
    values = {"prompt": prompt, "description": " ".join(prompt.split()[:6])}
    yield Intent("task", values if model is None else {**values, "model": model["model"]})


# ------------------------------------------------------------------------------------------------------------ commands

_RUN = re.compile(
    rf"{BEFORE_COMMAND}(?:run|execute|exec|launch)\s+(?:(?:the\s+)?(?:shell\s+)?command\s+)?:?\s*"
    rf"(?:{QUOTED_TEXT.format('')}|(?P<plain>(?!(?:the|a|an|my|all|our|this|that|these|it|them|some|any|every|your)\b)"
    r"[a-z./][^\n]*))",
    re.IGNORECASE | re.MULTILINE,
)
_TRAILING = re.compile(r"\s(?:and (?:then|tell|show|say)|for me|please)\b.*", re.IGNORECASE)
_SHELL_COMMAND = re.compile(r"^\s*\$?\s*(?P<plain>(?:git|npm|cargo|pytest|uv|docker|kubectl|pip)\s+(?:[a-z-][^\n?]*))$")


def find_commands(ask: UserRequest) -> Iterator[Intent]:
    if typed := _SHELL_COMMAND.match(ask.text):
        yield Intent("shell", {"command": typed["plain"].strip()})
    elif not QUESTION_START.match(ask.text):
        for match in _RUN.finditer(ask.text):
            command = matched_text(match)
            if match["plain"]:
                command = _TRAILING.sub("", command).rstrip(" .?!")
            yield Intent("shell", {"command": command.strip()})


# ---------------------------------------------------------------------------------------------------------------- todos

_TODO = re.compile(
    r"\b(?:make|write|keep|add|put|start|create|update|set up|note)\b[^.\n]*?\bto-?dos?\b(?:\s+list)?", re.IGNORECASE
)


def find_todos(ask: UserRequest) -> Iterator[Intent]:
    found = _TODO.search(ask.masked)
    if found is None:
        return
    after = ask.text[found.end() :].lstrip(" :.-").strip()
    after = re.sub(r"^(?:with|for|of|to)\s+(?:the\s+)?(?:items?\s+)?", "", after, flags=re.IGNORECASE).strip(" :.\n")
    items = [part.strip(" -*\"'`.") for part in re.split(r"\s*(?:,|;|\n|\band\b)\s*", after or ask.attachment)]
    told = [{"text": item[:200], "state": "open"} for item in items if item]
    if told:
        yield Intent("todo", {"items": told})


# ---------------------------------------------------------------------------------------------------------------- pages

_URL = re.compile(r"\bhttps?://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]", re.IGNORECASE)


def find_pages(ask: UserRequest) -> Iterator[Intent]:
    yield from (Intent("fetch", {"url": match[0]}) for match in _URL.finditer(ask.text))


# -------------------------------------------------------------------------------------------------------------- changes

_CHANGE = re.compile(
    rf"{BEFORE_COMMAND}(?:replace|change|rename|edit|correct|fix|turn|substitute)\s+(?:the\s+)?(?:word\s+|text\s+)?"
    rf"(?:{QUOTED_TEXT.format('o_')}|(?P<o_plain>[^\s,]+))\s+(?:with|by|to|into|for)\s+"
    rf"(?:{QUOTED_TEXT.format('n_')}|(?P<n_plain>[^\s,]+))",
    re.IGNORECASE,
)


def find_edits(ask: UserRequest) -> Iterator[Intent]:
    found = _CHANGE.search(ask.text)
    inside = [one for one in ask.paths if found is None or one.start >= found.end() or one.end <= found.start()]
    if found and len(inside) == 1 and not QUESTION_START.match(ask.text):
        old, new = matched_text(found, "o_"), matched_text(found, "n_")
        yield Intent("edit", {"path": inside[0].text, "old": old, "new": new.rstrip(".")})


_TARGET = re.compile(
    r"(?:\b(?:to|into|in|as|called|named|file|create|write|save|make)|:)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+|empty\s+)?"
    r"(?:file\s+)?(?:called\s+|named\s+)?[`\"']?$",
    re.IGNORECASE,
)
_CONTENT_MARK = re.compile(
    r"(?:\b(?:with|saying|containing|that says)\b(?:\s+(?:the\s+)?(?:text|content|words?|line)s?\b)?|:)\s*"
)


def find_writes(ask: UserRequest) -> Iterator[Intent]:
    """A file to be written: where the words name it as where something goes, and say what."""
    verb = WRITE_VERB.search(ask.masked)
    if verb is None or not ask.paths or QUESTION_START.match(ask.text):
        return
    target = next((one for one in reversed(ask.paths) if _TARGET.search(ask.text[: one.start])), None)
    if target is None or target.start < verb.end():
        return
    outside = f"{ask.text[: target.start].rstrip('`')}\n{ask.text[target.end :].lstrip('`')}"
    quoted = QUOTED.search(outside)
    after = ask.text[target.end :].lstrip("`\"' ")
    between = ask.text[verb.end() : target.start]
    if quoted:
        content = matched_text(quoted)
    elif saying := _CONTENT_MARK.match(after):
        content = after[saying.end() :].strip()
    elif ask.attachment:
        content = f"{ask.attachment}\n"
    elif verb["verb"].lower() in ("create", "make") and not after.strip(" .!"):
        content = ""
    elif len(ask.paths) == 1:
        content = _TARGET.sub("", between).strip(" `\"'")
        if not content or re.match(r"(?:an?|the|some|your|my|this|that|it)\b", content, re.IGNORECASE):
            return
    else:
        return
    yield Intent("write", {"path": target.text, "content": content})


_CHANGE_VERB = re.compile(
    rf"{BEFORE_COMMAND}(?:delete|remove|append|add|fix|refactor|rename|move|update|write|create|save|put|replace|change|edit"
    r"|correct|insert|translate|mend|implement|make|run|execute)\b",
    re.IGNORECASE,
)


def needs_change(text: str) -> bool:
    """Whether something is to be changed or run."""
    ask, _ = split_attachment(text)
    return bool(_CHANGE_VERB.search(mask_paths(ask, find_paths(ask)))) and not QUESTION_START.match(ask)


def mentions_task(text: str) -> bool:
    return _TASK.search(text) is not None

"""Finds intents to act in the user's text: sub-agents, commands, to-dos, pages and file changes.

Nothing is changed or run unless the text asks for it explicitly and with all values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.emulator.model.asks import ASKS, POLITE, QUOTED, TEXT, WRITE, Ask, Errand, parted, text_of
from segue.emulator.model.named import files_in, hidden

__all__ = ["asks_for_change", "changes", "commands", "names_task", "pages", "tasks", "texts", "todos"]

_TASK = re.compile(
    r"\b(?:sub-?agents?|delegate|another agent|an agent|task tool|tool task"
    r"|(?:use|call|start|spawn) (?:a |the )?task)\b",
    re.IGNORECASE,
)
_WORK = re.compile(r"\b(?:to|that|which|:)\s+(?P<work>.+)$", re.IGNORECASE | re.DOTALL)
_MODEL = re.compile(r"\b(?:with|on|model|using)\s+(?P<model>[a-z][\w-]*/[\w.:-]*\w)", re.IGNORECASE)


def tasks(ask: Ask) -> Iterator[Errand]:
    if not (found := _TASK.search(ask.bare)) or re.match(
        r"\s*(?:what|how|why|is|are|does)\b", ask.words, re.IGNORECASE
    ):
        return
    model = _MODEL.search(ask.words)
    words = ask.words if model is None else f"{ask.words[: model.start()]}{ask.words[model.end() :]}"
    work = _WORK.search(words[found.end() :] if model is None else words)
    prompt = " ".join((work["work"] if work else words).split()).rstrip(".")
    values = {"prompt": prompt, "description": " ".join(prompt.split()[:6])}
    yield Errand("task", values if model is None else {**values, "model": model["model"]})


# ------------------------------------------------------------------------------------------------------------ commands

_RUN = re.compile(
    rf"{POLITE}(?:run|execute|exec|launch)\s+(?:(?:the\s+)?(?:shell\s+)?command\s+)?:?\s*"
    rf"(?:{TEXT.format('')}|(?P<plain>(?!(?:the|a|an|my|all|our|this|that|these|it|them|some|any|every|your)\b)"
    r"[a-z./][^\n]*))",
    re.IGNORECASE | re.MULTILINE,
)
_BEHIND = re.compile(r"\s(?:and (?:then|tell|show|say)|for me|please)\b.*", re.IGNORECASE)
_TYPED = re.compile(r"^\s*\$?\s*(?P<plain>(?:git|npm|cargo|pytest|uv|docker|kubectl|pip)\s+(?:[a-z-][^\n?]*))$")


def commands(ask: Ask) -> Iterator[Errand]:
    if typed := _TYPED.match(ask.words):
        yield Errand("shell", {"command": typed["plain"].strip()})
    elif not ASKS.match(ask.words):
        for match in _RUN.finditer(ask.words):
            command = text_of(match)
            if match["plain"]:
                command = _BEHIND.sub("", command).rstrip(" .?!")
            yield Errand("shell", {"command": command.strip()})


# ---------------------------------------------------------------------------------------------------------------- todos

_TODO = re.compile(
    r"\b(?:make|write|keep|add|put|start|create|update|set up|note)\b[^.\n]*?\bto-?dos?\b(?:\s+list)?", re.IGNORECASE
)


def todos(ask: Ask) -> Iterator[Errand]:
    found = _TODO.search(ask.bare)
    if found is None:
        return
    after = ask.words[found.end() :].lstrip(" :.-").strip()
    after = re.sub(r"^(?:with|for|of|to)\s+(?:the\s+)?(?:items?\s+)?", "", after, flags=re.IGNORECASE).strip(" :.\n")
    items = [part.strip(" -*\"'`.") for part in re.split(r"\s*(?:,|;|\n|\band\b)\s*", after or ask.given)]
    told = [{"text": item[:200], "state": "open"} for item in items if item]
    if told:
        yield Errand("todo", {"items": told})


# ---------------------------------------------------------------------------------------------------------------- pages

_URL = re.compile(r"\bhttps?://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]", re.IGNORECASE)


def pages(ask: Ask) -> Iterator[Errand]:
    yield from (Errand("fetch", {"url": match[0]}) for match in _URL.finditer(ask.words))


# -------------------------------------------------------------------------------------------------------------- changes

_CHANGE = re.compile(
    rf"{POLITE}(?:replace|change|rename|edit|correct|fix|turn|substitute)\s+(?:the\s+)?(?:word\s+|text\s+)?"
    rf"(?:{TEXT.format('o_')}|(?P<o_plain>[^\s,]+))\s+(?:with|by|to|into|for)\s+"
    rf"(?:{TEXT.format('n_')}|(?P<n_plain>[^\s,]+))",
    re.IGNORECASE,
)


def changes(ask: Ask) -> Iterator[Errand]:
    found = _CHANGE.search(ask.words)
    inside = [one for one in ask.files if found is None or one.start >= found.end() or one.end <= found.start()]
    if found and len(inside) == 1 and not ASKS.match(ask.words):
        old, new = text_of(found, "o_"), text_of(found, "n_")
        yield Errand("edit", {"path": inside[0].text, "old": old, "new": new.rstrip(".")})


_TARGET = re.compile(
    r"(?:\b(?:to|into|in|as|called|named|file|create|write|save|make)|:)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+|empty\s+)?"
    r"(?:file\s+)?(?:called\s+|named\s+)?[`\"']?$",
    re.IGNORECASE,
)
_SAYING = re.compile(
    r"(?:\b(?:with|saying|containing|that says)\b(?:\s+(?:the\s+)?(?:text|content|words?|line)s?\b)?|:)\s*"
)


def texts(ask: Ask) -> Iterator[Errand]:
    """A file to be written: where the words name it as where something goes, and say what."""
    verb = WRITE.search(ask.bare)
    if verb is None or not ask.files or ASKS.match(ask.words):
        return
    target = next((one for one in reversed(ask.files) if _TARGET.search(ask.words[: one.start])), None)
    if target is None or target.start < verb.end():
        return
    outside = f"{ask.words[: target.start].rstrip('`')}\n{ask.words[target.end :].lstrip('`')}"
    quoted = QUOTED.search(outside)
    after = ask.words[target.end :].lstrip("`\"' ")
    between = ask.words[verb.end() : target.start]
    if quoted:
        content = text_of(quoted)
    elif saying := _SAYING.match(after):
        content = after[saying.end() :].strip()
    elif ask.given:
        content = f"{ask.given}\n"
    elif verb["verb"].lower() in ("create", "make") and not after.strip(" .!"):
        content = ""
    elif len(ask.files) == 1:
        content = _TARGET.sub("", between).strip(" `\"'")
        if not content or re.match(r"(?:an?|the|some|your|my|this|that|it)\b", content, re.IGNORECASE):
            return
    else:
        return
    yield Errand("write", {"path": target.text, "content": content})


_ALTERS = re.compile(
    rf"{POLITE}(?:delete|remove|append|add|fix|refactor|rename|move|update|write|create|save|put|replace|change|edit"
    r"|correct|insert|translate|mend|implement|make|run|execute)\b",
    re.IGNORECASE,
)


def asks_for_change(words: str) -> bool:
    """Whether something is to be changed or run."""
    ask, _ = parted(words)
    return bool(_ALTERS.search(hidden(ask, files_in(ask)))) and not ASKS.match(ask)


def names_task(words: str) -> bool:
    return _TASK.search(words) is not None

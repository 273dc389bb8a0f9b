"""What words ask an agent to do with files and commands: which errand, with what. Where they ask for none, nothing.

Nothing is changed or run unless the words say so as a demand, and no value is a whole sentence: what the words don't
name is not asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from segue.emulator.model.named import Named, files_in, folder_in, hidden

__all__ = ["Errand", "Role", "asks_about_all", "errands_in", "given_with", "wanted_file"]

Role: TypeAlias = Literal["read", "list", "glob", "grep", "write", "edit", "shell", "fetch", "todo", "task"]

_FAR = 4_000
_GIVEN = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ |```|[{\[<#]|Traceback |\s{2,}\S)", re.MULTILINE)
_POLITE = r"(?:(?:^|[.!,;:\n]|\b(?:and|then|please|now|you|to|just|me)\b)\s*)"
_TEXT = r"(?:`(?P<{0}code>[^`\n]+)`|\"(?P<{0}double>[^\"\n]+)\"|'(?P<{0}single>[^'\n]+)'|“(?P<{0}curly>[^”\n]+)”)"


class Errand(Struct, frozen=True):
    role: Role
    values: Mapping[str, Any]


def errands_in(words: str) -> list[Errand]:
    """What is to be done, the first kind of errand that the words tell of."""
    ask, given = _parted(words)
    made = _asked(ask, given)
    last = given.rsplit("\n\n", 1)[-1].strip()
    if not made and last.endswith("?") and "\n" not in last:
        made = _asked(last, given)
    return made


def _asked(ask: str, given: str) -> list[Errand]:
    files = files_in(ask)
    bare = hidden(ask, files)
    for find in (_tasks, _commands, _todos, _pages, _changes, _texts, _searches, _names, _files, _folders):
        made = list(find(_Ask(ask, bare, given, files)))
        if made:
            return made
    return []


class _Ask(Struct, frozen=True):
    """`bare` are the words with the names of files hidden; `given` is what came with them."""

    words: str
    bare: str
    given: str
    files: tuple[Named, ...]


_Find: TypeAlias = Callable[[_Ask], Iterator[Errand]]


def _parted(words: str) -> tuple[str, str]:
    """The question, and what was given with it: a text that was piped in stands after an empty line."""
    ask, _, given = words[:_FAR].strip().partition("\n\n")
    given += words[_FAR:]
    if (found := _GIVEN.search(ask)) and found.start():
        ask, given = ask[: found.start()], f"{ask[found.start() :]}\n\n{given}"
    return ask.strip(), given.strip()


def given_with(words: str) -> tuple[str, str]:
    """The question, and what was given with it."""
    return _parted(words)


# ------------------------------------------------------------------------------------------------------ work for others

_TASK = re.compile(
    r"\b(?:sub-?agents?|delegate|another agent|an agent|task tool|tool task"
    r"|(?:use|call|start|spawn) (?:a |the )?task)\b",
    re.IGNORECASE,
)
_WORK = re.compile(r"\b(?:to|that|which|:)\s+(?P<work>.+)$", re.IGNORECASE | re.DOTALL)
_MODEL = re.compile(r"\b(?:with|on|model|using)\s+(?P<model>[a-z][\w-]*/[\w.:-]*\w)", re.IGNORECASE)


def _tasks(ask: _Ask) -> Iterator[Errand]:
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
    rf"{_POLITE}(?:run|execute|exec|launch)\s+(?:the\s+)?(?:(?:shell\s+)?command\s+)?:?\s*"
    rf"(?:{_TEXT.format('')}|(?P<plain>(?!(?:the|a|an|my|all|our|this|that|these|it|them|some|any|every|your)\b)"
    r"[a-z./][\w./-]*(?:\s[^\n]*?)?)\s*(?:[.?!]?\s*$|\s+(?:and then|and tell|and show|and say|for me|please)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_TYPED = re.compile(r"^\s*\$?\s*(?P<plain>(?:git|npm|cargo|pytest|uv|docker|kubectl|pip)\s+(?:[a-z-][^\n?]*))$")
_TOLD_TO = re.compile(r"\s*(?:how|why|what|should|when|do|does|did|is|explain|tell me how)\b", re.IGNORECASE)


def _commands(ask: _Ask) -> Iterator[Errand]:
    if typed := _TYPED.match(ask.words):
        yield Errand("shell", {"command": typed["plain"].strip()})
    elif not _TOLD_TO.match(ask.words):
        for match in _RUN.finditer(ask.words):
            yield Errand("shell", {"command": _text_of(match).strip()})


# ---------------------------------------------------------------------------------------------------------------- todos

_TODO = re.compile(
    r"\b(?:make|write|keep|add|put|start|create|update|set up|note)\b[^.\n]*?\bto-?dos?\b(?:\s+list)?", re.IGNORECASE
)


def _todos(ask: _Ask) -> Iterator[Errand]:
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


def _pages(ask: _Ask) -> Iterator[Errand]:
    yield from (Errand("fetch", {"url": match[0]}) for match in _URL.finditer(ask.words))


# -------------------------------------------------------------------------------------------------------------- changes

_CHANGE = re.compile(
    rf"{_POLITE}(?:replace|change|rename|edit|correct|fix|turn|substitute)\s+(?:the\s+)?(?:word\s+|text\s+)?"
    rf"(?:{_TEXT.format('o_')}|(?P<o_plain>[^\s,]+))\s+(?:with|by|to|into|for)\s+"
    rf"(?:{_TEXT.format('n_')}|(?P<n_plain>[^\s,]+))",
    re.IGNORECASE,
)


def _changes(ask: _Ask) -> Iterator[Errand]:
    found = _CHANGE.search(ask.words)
    inside = [one for one in ask.files if found is None or one.start >= found.end() or one.end <= found.start()]
    if found and len(inside) == 1 and not _TOLD_TO.match(ask.words):
        old, new = _text_of(found, "o_"), _text_of(found, "n_")
        yield Errand("edit", {"path": inside[0].text, "old": old, "new": new.rstrip(".")})


_WRITE = re.compile(rf"{_POLITE}(?P<verb>write|save|create|put|make|store)\b", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:\b(?:to|into|in|as|called|named|file|create|write|save|make)|:)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+|empty\s+)?"
    r"(?:file\s+)?(?:called\s+|named\s+)?[`\"']?$",
    re.IGNORECASE,
)
_QUOTED = re.compile(_TEXT.format(""))
_SAYING = re.compile(
    r"(?:\b(?:with|saying|containing|that says)\b(?:\s+(?:the\s+)?(?:text|content|words?|line)s?\b)?|:)\s*"
)


def _texts(ask: _Ask) -> Iterator[Errand]:
    """A file to be written: where the words name it as where something goes, and say what."""
    verb = _WRITE.search(ask.bare)
    if verb is None or not ask.files or _TOLD_TO.match(ask.words):
        return
    target = next((one for one in reversed(ask.files) if _TARGET.search(ask.words[: one.start])), None)
    if target is None or target.start < verb.end():
        return
    outside = f"{ask.words[: target.start].rstrip('`')}\n{ask.words[target.end :].lstrip('`')}"
    quoted = _QUOTED.search(outside)
    after = ask.words[target.end :].lstrip("`\"' ")
    between = ask.words[verb.end() : target.start]
    if quoted:
        content = _text_of(quoted)
    elif saying := _SAYING.match(after):
        content = after[saying.end() :].strip()
    elif ask.given:
        content = ask.given
    elif verb["verb"].lower() in ("create", "make") and not after.strip(" .!"):
        content = ""
    elif len(ask.files) == 1:
        content = _TARGET.sub("", between).strip(" `\"'")
        if not content or re.match(r"(?:an?|the|some|your|my|this|that|it)\b", content, re.IGNORECASE):
            return
    else:
        return
    yield Errand("write", {"path": target.text, "content": content if not content else f"{content.rstrip()}\n"})


# ------------------------------------------------------------------------------------------------------------- searches

_SEARCH = re.compile(
    r"\b(?:grep(?:\s+for)?|search(?:\s+(?:the\s+|this\s+|my\s+|all\s+)?\w+)??\s+for|look(?:ing)?\s+for|find|search"
    r"|occurrences?\s+of|(?:which|what)\s+files?\s+(?:use|mention|contain|import|define|call)s?|who\s+(?:calls|uses)"
    r"|where\s+(?:is|are|do|does)(?:\s+(?:we|i|it|they))?(?:\s+(?:use|call|define|import|mention))?)\s+(?P<rest>[^\n?!]+)",
    re.IGNORECASE,
)
_FILLER = frozenset(
    [
        "all",
        "any",
        "every",
        "the",
        "a",
        "an",
        "of",
        "for",
        "uses",
        "use",
        "usages",
        "occurrences",
        "occurrence",
        "mentions",
        "mention",
        "references",
        "reference",
        "places",
        "where",
        "word",
        "words",
        "text",
        "string",
        "pattern",
        "function",
        "class",
        "method",
        "variable",
        "functions",
        "me",
        "out",
        "called",
        "that",
        "says",
        "with",
        "calls",
        "to",
        "line",
        "lines",
        "containing",
        "which",
        "contain",
        "contains",
        "contents",
        "comments",
        "comment",
    ]
)
_CUT = re.compile(
    r"\s+(?:in|inside|within|across|under|below|from|defined|used|called|imported|mentioned|here|anywhere|and)\b|[,;]|\.(?=\s|$)",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(r"\bfiles?\b|\bfolders?\b", re.IGNORECASE)
_MOST_WORDS = 3


def _searches(ask: _Ask) -> Iterator[Errand]:
    found = _SEARCH.search(ask.words)
    if found is None:
        return
    named = _CUT.split(f" {found['rest']}", maxsplit=1)[0]
    if any(one.start <= found.start("rest") + 12 and one.start >= found.start("rest") for one in ask.files):
        named = "" if not _QUOTED.search(found["rest"]) else named
    quoted = _QUOTED.search(found["rest"])
    if quoted:
        pattern = _text_of(quoted)
    else:
        left = named.split()
        while left and left[0].lower() in _FILLER:
            left = left[1:]
        while left and left[-1].lower() in _FILLER:
            left = left[:-1]
        pattern = " ".join(left).strip("()").removesuffix("(")
        if not pattern or len(left) > _MOST_WORDS or _ABOUT_FILES.search(pattern):
            return
        if pattern.isupper() or pattern.lower() == pattern:
            pattern = "TODO" if pattern.lower() in ("todos", "todo") else pattern
        elif pattern == "TODOs":
            pattern = "TODO"
        if pattern.lower() in ("it", "this", "that", "out", "you", "we", "i"):
            return
    values: dict[str, Any] = {"pattern": pattern}
    place = next((one.text for one in ask.files if one.text != pattern), None) or folder_in(ask.bare)
    if place is not None:
        values["path"] = place
    if re.search(r"[.+*?()|\[\]{}^$\\]", pattern):
        values["literal"] = True
    yield Errand("grep", values)


_KINDS = {
    "python": "py",
    "markdown": "md",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "go": "go",
    "json": "json",
    "yaml": "yaml",
    "toml": "toml",
    "text": "txt",
    "html": "html",
    "css": "css",
    "java": "java",
    "ruby": "rb",
    "csv": "csv",
    "shell": "sh",
    "c": "c",
}
_KIND = re.compile(
    rf"\b(?P<kind>{'|'.join(_KINDS)})\s+(?:source\s+)?files?\b|(?<![\w/])\.(?P<ending>[a-z]\w{{0,4}})\s+files?\b",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\b(?:where\s+(?:is|are)|find|locate|is\s+there)\b", re.IGNORECASE)


def _names(ask: _Ask) -> Iterator[Errand]:
    """Files by their name: a pattern as it was written, a kind of files, or a file that is looked for."""
    where = folder_in(ask.bare)
    beside = {"path": where} if where else {}
    stars = [one.text for one in ask.files if "*" in one.text]
    kinds = [f"**/*.{_KINDS.get((one['kind'] or '').lower()) or one['ending']}" for one in _KIND.finditer(ask.bare)]
    sought = [one.text for one in ask.files if "/" not in one.text] if _WHERE.search(ask.bare) else []
    for pattern in stars or kinds or [f"**/{name}" for name in sought]:
        yield Errand("glob", {"pattern": pattern, **beside})


# ------------------------------------------------------------------------------------------------------ files, folders

_WANTED = re.compile(
    r"\b(?P<name>readme|licen[sc]e|changelog|makefile|dockerfile|contributing)\b(?!\.\w)", re.IGNORECASE
)
_THINGS = (
    r"(?:project|repo(?:sitory)?|code ?base|code|folder|directory|app|program|package|library|workspace|game|site)"
)
_WHOLE = re.compile(
    rf"\b(?:this|the|your|my|our)\s+(?:\w+\s+)?{_THINGS}\b|\blook (?:a)?round\b|\bwhat(?:'s| is| have we| do we have"
    r"| do you see| can you see)\s+(?:(?:all|in|going on)\s+)*(?:here|there|this|around)\b|\bwhat(?:'s| is) this\b"
    r"|\b(?:what|which) do you (?:see|have)\b|\btell me about (?:this|it)\b|\bwhere am i\b|\bget an overview\b"
    r"|\bhow (?:do|can|would|should) (?:i|we|you|one)\s+(?:run|install|build|use|start|test|set)\b"
    r"|\bsummar\w+ (?:this|it)\b",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"^\s*(?:ls|dir|tree)\b|\blist\b.*\b(?:files?|folders?|director(?:y|ies)|everything|contents?|all|dir)\b"
    r"|\b(?:what|which|show|how many|see|are there)\b.*\b(?:files?|folders?|director(?:y|ies)|tree)\b|^\s*list\b",
    re.IGNORECASE,
)


def _files(ask: _Ask) -> Iterator[Errand]:
    for one in ask.files:
        yield Errand("list" if one.is_folder else "read", {"path": one.text})


def _folders(ask: _Ask) -> Iterator[Errand]:
    where = folder_in(ask.bare)
    beside = {"path": where} if where else {}
    looks = _LISTING.search(ask.bare) or where or (_WHOLE.search(ask.bare) and not ask.given)
    if looks or (_WANTED.search(ask.bare) and not ask.given and not _WRITE.search(ask.bare)):
        yield Errand("list", beside)


def asks_about_all(words: str) -> bool:
    """Whether a look at the folder is not all that is wanted: what it is for should be told too."""
    ask, given = _parted(words)
    bare = hidden(ask, files_in(ask))
    return bool(_WHOLE.search(bare)) and not given and not _LISTING.search(bare)


def wanted_file(words: str) -> str | None:
    """A file that is called by its name without the ending, as «the README»."""
    found = _WANTED.search(_parted(words)[0])
    return found["name"].lower().replace("licence", "license") if found else None


def _text_of(match: re.Match[str], prefix: str = "") -> str:
    """What a pattern with a text in it caught, however that was quoted."""
    caught = match.groupdict()
    names = (f"{prefix}{how}" for how in ("code", "double", "single", "curly", "plain"))
    return next((caught[name] for name in names if caught.get(name) is not None), "") or ""

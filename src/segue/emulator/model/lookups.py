"""Finds intents to look something up: text in files, files by name, the content of a file or folder.

Only what the text names is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segue.emulator.model.asks import QUOTED, WRITE, Ask, Errand, parted, text_of
from segue.emulator.model.named import files_in, folder_in, hidden

__all__ = ["asks_about_all", "files", "folders", "names", "searches", "wanted_file"]

_SEARCH = re.compile(
    r"\b(?P<how>grep(?:\s+for)?|search(?:\s+(?:the\s+|this\s+|my\s+|all\s+)?\w+)??\s+for|look(?:ing)?\s+for|find|search"
    r"|(?:what|how)\s+does(?=\s+(?:the\s+)?(?:function|class|method)\b)|occurrences?\s+of"
    r"|(?:which|what)\s+files?\s+(?:use|mention|contain|import|define|call)s?|who\s+(?:calls|uses)"
    r"|where\s+(?:is|are|do|does)(?:\s+(?:we|i|it|they))?(?:\s+(?:use|call|define|import|mention))?)\s+(?P<rest>[^\n?!]+)",
    re.IGNORECASE,
)
_FILLING = """
    a all an any called calls class comment comments contain containing contains contents every for function functions
    line lines me mention mentions method occurrence occurrences of out pattern places reference references says string
    text that the to usages use uses variable where which with word words
"""
_FILLER = frozenset(_FILLING.split())
_CUT = re.compile(
    r"\s+(?:in|inside|within|across|under|below|from|defined|used|called|do|does|work|works|mean"
    r"|imported|mentioned|here|anywhere|and)\b|[,;]|\.(?=\s|$)",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(r"\bfiles?\b|\bfolders?\b", re.IGNORECASE)
_MOST_WORDS = 3
_LOOSE = frozenset({"find", "look for", "looking for"})
_VAGUE = """
    bug bugs error errors everything here i issue issues it me mistake mistakes my one out problem problems some
    something that this typo typos we you
"""
_NO_PATTERNS = frozenset(_VAGUE.split())
_ELSEWHERE = re.compile(r"\b(?:web|internet|online|google)\b", re.IGNORECASE)


def searches(ask: Ask) -> Iterator[Errand]:
    found = _SEARCH.search(ask.words)
    if found is None or _ELSEWHERE.search(ask.bare):
        return
    named = _CUT.split(f" {found['rest']}", maxsplit=1)[0]
    if any(one.start <= found.start("rest") + 12 and one.start >= found.start("rest") for one in ask.files):
        named = "" if not QUOTED.search(found["rest"]) else named
    quoted = QUOTED.search(found["rest"])
    if quoted:
        pattern = text_of(quoted)
    else:
        left = named.split()
        while left and left[0].lower() in _FILLER:
            left = left[1:]
        while left and left[-1].lower() in _FILLER:
            left = left[:-1]
        pattern = " ".join(left).strip("()").removesuffix("(")
        if not pattern or len(left) > _MOST_WORDS or _ABOUT_FILES.search(pattern):
            return
        if pattern.lower() in _NO_PATTERNS or (len(left) > 1 and found["how"].lower() in _LOOSE):
            return
        if pattern.lower() in ("todo", "todos"):
            pattern = "TODO"
    values: dict[str, Any] = {"pattern": pattern}
    place = next((one.text for one in ask.files if one.text != pattern), None) or folder_in(ask.bare)
    if place is not None:
        values["path"] = place
    if re.search(r"[.+*?()|\[\]{}^$\\]", pattern):
        values["literal"] = True
    yield Errand("grep", values)


_ENDINGS = """
    c=c css=css csv=csv go=go html=html java=java javascript=js json=json markdown=md python=py ruby=rb rust=rs shell=sh
    text=txt toml=toml typescript=ts yaml=yaml
"""
_KINDS = {kind: ending for kind, _, ending in (pair.partition("=") for pair in _ENDINGS.split())}
_KIND = re.compile(
    rf"\b(?P<kind>{'|'.join(_KINDS)})\s+(?:source\s+)?files?\b|(?<![\w/])\.(?P<ending>[a-z]\w{{0,4}})\s+files?\b",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\b(?:where\s+(?:is|are)|find|locate|is\s+there)\b", re.IGNORECASE)


def names(ask: Ask) -> Iterator[Errand]:
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
    rf"\b(?:(?:this|my|our|your)(?:\s+\w+){{0,2}}|the)\s+{_THINGS}\b"
    r"|\b(?:ce|cette|dieses?|este|esta|questo)\s+(?:projet|projekt|proyecto|progetto|projeto|code|ordner|dossier)\b"
    r"|\blook (?:a)?round\b|\bget an overview\b|\bwhere am i\b|\b(?:tell me about|summari[sz]e|explain) (?:this|it)\b"
    r"|\bwhat(?:'s| is| have we| do we have| do you see| can you see)\s+(?:(?:all|in|going on)\s+)*"
    r"(?:here|there|around)\b|\bwhat do you (?:see|have)\b|\bwhat(?:'s| is) this\b"
    r"|\b(?:what|how|who|which)\b.{0,30}\b(?:does|is|was|did) this\b"
    r"|\bhow (?:do|can|would|should) (?:i|we|you|one)\s+(?:run|install|build|use|start|test|set)\b",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"^\s*(?:ls|dir|tree)\b|\blist\b.*\b(?:files?|folders?|director(?:y|ies)|everything|contents?|all|dir)\b"
    r"|\b(?:what|which|show|how many|see|are there)\b.*\b(?:files?|folders?|director(?:y|ies)|tree)\b|^\s*list\b",
    re.IGNORECASE,
)


_BARE = re.compile(
    r"^\s*(?:please\s+)?(?:read|cat|open)\s+(?:the\s+)?(?:file\s+)?[`\"']?(?P<name>[\w-]+)[`\"']?\s*[.!?]?\s*$",
    re.IGNORECASE,
)


def files(ask: Ask) -> Iterator[Errand]:
    bare = _BARE.match(ask.bare)
    if bare and bare["name"].lower() not in _NO_PATTERNS and not _WANTED.match(bare["name"]):
        yield Errand("read", {"path": bare["name"]})
    for one in ask.files:
        yield Errand("list" if one.is_folder else "read", {"path": one.text})


def folders(ask: Ask) -> Iterator[Errand]:
    where = folder_in(ask.bare)
    beside = {"path": where} if where else {}
    looks = _LISTING.search(ask.bare) or where or (_WHOLE.search(ask.bare) and not ask.given)
    if looks or (_WANTED.search(ask.bare) and not ask.given and not WRITE.search(ask.bare)):
        yield Errand("list", beside)


def asks_about_all(words: str) -> bool:
    """Whether a look at the folder is not all that is wanted: what it is for should be told too."""
    ask, given = parted(words)
    bare = hidden(ask, files_in(ask))
    return bool(_WHOLE.search(bare)) and not given and not _LISTING.search(bare)


def wanted_file(words: str) -> str | None:
    """A file that is called by its name without the ending, as «the README»."""
    found = _WANTED.search(parted(words)[0])
    return found["name"].lower().replace("licence", "license") if found else None

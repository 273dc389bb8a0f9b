"""Finds intents to look something up: text in files, files by name, the content of a file or folder.

Only what the text names is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segue.emulator.model.file_names import find_folder, find_paths, mask_paths
from segue.emulator.model.user_request import QUOTED, WRITE_VERB, Intent, UserRequest, matched_text, split_attachment

__all__ = ["find_globs", "find_listings", "find_reads", "find_searches", "find_well_known_file", "is_about_project"]

_SEARCH = re.compile(
    r"\b(?P<how>grep(?:\s+for)?|search(?:\s+(?:the\s+|this\s+|my\s+|all\s+)?\w+)??\s+for|look(?:ing)?\s+for|find|search"
    r"|(?:what|how)\s+does(?=\s+(?:the\s+)?(?:function|class|method)\b)|occurrences?\s+of"
    r"|(?:which|what)\s+files?\s+(?:use|mention|contain|import|define|call)s?|who\s+(?:calls|uses)"
    r"|where\s+(?:is|are|do|does)(?:\s+(?:we|i|it|they))?(?:\s+(?:use|call|define|import|mention))?)\s+(?P<rest>[^\n?!]+)",
    re.IGNORECASE,
)
_FILLER_TEXT = """
    a all an any called calls class comment comments contain containing contains contents every for function functions
    line lines me mention mentions method occurrence occurrences of out pattern places reference references says string
    text that the to usages use uses variable where which with word words
"""
_FILLER = frozenset(_FILLER_TEXT.split())
_CUT = re.compile(
    r"\s+(?:in|inside|within|across|under|below|from|defined|used|called|do|does|work|works|mean"
    r"|imported|mentioned|here|anywhere|and)\b|[,;]|\.(?=\s|$)",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(r"\bfiles?\b|\bfolders?\b", re.IGNORECASE)
_MOST_WORDS = 3
_LOOSE = frozenset({"find", "look for", "looking for"})
_VAGUE_TEXT = """
    bug bugs error errors everything here i issue issues it me mistake mistakes my one out problem problems some
    something that this typo typos we you
"""
_NO_PATTERNS = frozenset(_VAGUE_TEXT.split())
_ELSEWHERE = re.compile(r"\b(?:web|internet|online|google)\b", re.IGNORECASE)


def find_searches(ask: UserRequest) -> Iterator[Intent]:
    found = _SEARCH.search(ask.text)
    if found is None or _ELSEWHERE.search(ask.masked):
        return
    named = _CUT.split(f" {found['rest']}", maxsplit=1)[0]
    if any(one.start <= found.start("rest") + 12 and one.start >= found.start("rest") for one in ask.paths):
        named = "" if not QUOTED.search(found["rest"]) else named
    quoted = QUOTED.search(found["rest"])
    if quoted:
        pattern = matched_text(quoted)
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
    place = next((one.text for one in ask.paths if one.text != pattern), None) or find_folder(ask.masked)
    if place is not None:
        values["path"] = place
    if re.search(r"[.+*?()|\[\]{}^$\\]", pattern):
        values["literal"] = True
    yield Intent("grep", values)


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


def find_globs(ask: UserRequest) -> Iterator[Intent]:
    """Files by their name: a pattern as it was written, a kind of files, or a file that is looked for."""
    where = find_folder(ask.masked)
    beside = {"path": where} if where else {}
    stars = [one.text for one in ask.paths if "*" in one.text]
    kinds = [f"**/*.{_KINDS.get((one['kind'] or '').lower()) or one['ending']}" for one in _KIND.finditer(ask.masked)]
    sought = [one.text for one in ask.paths if "/" not in one.text] if _WHERE.search(ask.masked) else []
    for pattern in stars or kinds or [f"**/{name}" for name in sought]:
        yield Intent("glob", {"pattern": pattern, **beside})


# ------------------------------------------------------------------------------------------------------ files, folders

_WELL_KNOWN_FILE = re.compile(
    r"\b(?P<name>readme|licen[sc]e|changelog|makefile|dockerfile|contributing)\b(?!\.\w)", re.IGNORECASE
)
_THINGS = (
    r"(?:project|repo(?:sitory)?|code ?base|code|folder|directory|app|program|package|library|workspace|game|site)"
)
_PROJECT_QUESTION = re.compile(
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


def find_reads(ask: UserRequest) -> Iterator[Intent]:
    bare = _BARE.match(ask.masked)
    if bare and bare["name"].lower() not in _NO_PATTERNS and not _WELL_KNOWN_FILE.match(bare["name"]):
        yield Intent("read", {"path": bare["name"]})
    for one in ask.paths:
        yield Intent("list" if one.is_folder else "read", {"path": one.text})


def find_listings(ask: UserRequest) -> Iterator[Intent]:
    where = find_folder(ask.masked)
    beside = {"path": where} if where else {}
    looks = _LISTING.search(ask.masked) or where or (_PROJECT_QUESTION.search(ask.masked) and not ask.attachment)
    if looks or (_WELL_KNOWN_FILE.search(ask.masked) and not ask.attachment and not WRITE_VERB.search(ask.masked)):
        yield Intent("list", beside)


def is_about_project(text: str) -> bool:
    """Whether a look at the folder is not all that is wanted: what it is for should be told too."""
    ask, given = split_attachment(text)
    bare = mask_paths(ask, find_paths(ask))
    return bool(_PROJECT_QUESTION.search(bare)) and not given and not _LISTING.search(bare)


def find_well_known_file(text: str) -> str | None:
    """A file that is called by its name without the ending, as «the README»."""
    found = _WELL_KNOWN_FILE.search(split_attachment(text)[0])
    return found["name"].lower().replace("licence", "license") if found else None

"""Finds the names of files and folders in the user's text."""

from __future__ import annotations

import re

from msgspec import Struct

__all__ = ["PathMention", "find_folder", "find_paths", "mask_paths"]

_EXTENSION_TEXT = """
    adoc bash bat c cc cfg cjs clj conf cpp cs css csv cu cxx dart db diff env erl ex exs fish gif go gradle graphql h
    hpp hs htm html ini ipynb java jl jpeg jpg js json jsonc jsonl jsx kt less lock log lua m md mdx mjs ml mm nix org
    patch pdf php pl png proto ps1 py pyi pyx r rb rs rst sass scala scss sh sql sqlite svelte svg swift tex tf toml ts
    tsv tsx txt vim vue webp xml yaml yml zig zsh
"""
_EXTENSIONS = frozenset(_EXTENSION_TEXT.split())
_NO_FILES = frozenset({"node.js", "vue.js", "next.js", "three.js", "d3.js", "e.g", "i.e"})
_SLASH_PHRASES = """
    and/or client/server either/or he/she his/her i/o input/output n/a on/off read/write she/he tcp/ip true/false w/o
    yes/no
"""
_NO_FOLDERS = frozenset(_SLASH_PHRASES.split())
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_FILE = re.compile(
    r"(?<![\w/.~*-])(?:~|\.{0,2})/(?:[\w.@*-]+/)*[\w.@*-]*|(?<![\w/.~*-])(?:[\w.@*-]+/)+[\w.@*-]*|(?<![\w/.~*-])\*{0,2}\.?[\w*-]+(?:\.[\w*-]+)*\.[A-Za-z]\w*"
    r"|(?<![\w/.~*-])\.[a-z][\w-]{2,}(?:\.\w+)*(?!\s+files?\b)|(?<![\w/.-])\.\.(?![\w.])"
)
_BEFORE = re.compile(
    r"\b(?:file|read|open|cat|show|view|in|print|called|named|head|tail)\s+(?:me\s+|the\s+)?[`\"']?$", re.IGNORECASE
)
_ORDINARY = re.compile(r"\b(?:model|with|on|using)\s+$", re.IGNORECASE)
_PLAIN = (
    "this|that|the|a|an|my|your|our|working|current|same|project|it|here|which|what|whole|root|any|each|every|of|in|new"
)
_FOLDER = re.compile(
    rf"\b(?:folder|directory|dir)\s+(?:called\s+|named\s+)?[`\"']?(?!(?:{_PLAIN}|is|has|and|do|does|look|contain|for|with|to|hold)s?\b)"
    rf"(?P<after>[\w.-]*\w)|\b(?!(?:{_PLAIN})\b)(?P<before>[\w.-]+)[`\"']?\s+(?:folder|directory|dir)\b"
    r"|\bin\s+(?:the\s+)?[`\"']?(?P<known>src|lib|tests?|docs?|bin|app|scripts|examples|tools|include|config)\b(?!\.)",
    re.IGNORECASE,
)


class PathMention(Struct, frozen=True):
    text: str
    start: int
    end: int

    @property
    def is_folder(self) -> bool:
        """By how it is written: a folder's name has no ending."""
        last = self.text.rpartition("/")[2]
        return last in ("", "..", ".") or ("/" in self.text and "." not in last and not last.isupper())


def find_paths(prompt: str) -> tuple[PathMention, ...]:
    """The files and folders that are written as such, in order."""
    text = prompt
    for pattern in (_CODE, _URL):
        text = pattern.sub(lambda match: "·" * len(match[0]), text)
    found: list[PathMention] = []
    for match in _FILE.finditer(text):
        name = match[0].rstrip(".") if match[0] != ".." else match[0]
        if name and _is_file(name, text[: match.start()]):
            found.append(PathMention(name, match.start(), match.start() + len(name)))
    return tuple(found)


def _is_file(name: str, before: str) -> bool:
    low = name.lower()
    if low in _NO_FILES or low in _NO_FOLDERS or not re.search(r"[^\W\d]|^\.\.$", name):
        return False
    last = low.rpartition("/")[2]
    ending = last.rpartition(".")[2] if "." in last else None
    if "/" in name:
        return ending in _EXTENSIONS or "*" in name or not _ORDINARY.search(before)
    if name.startswith(".") or "*" in name:
        return True
    return ending in _EXTENSIONS or bool(_BEFORE.search(before))


def find_folder(prompt: str) -> str | None:
    """A folder that is called one, as «the src folder»."""
    found = _FOLDER.search(prompt)
    return next((text for text in found.groups() if text), None) if found else None


def mask_paths(text: str, names: tuple[PathMention, ...]) -> str:
    for name in names:
        text = f"{text[: name.start]}{'·' * (name.end - name.start)}{text[name.end :]}"
    return text

"""The rules of Gemini generateContent (GEM-*) that a request body can show.

Every rulebook number is either a check in one of the modules beside this one or a row of `UNSHOWABLE`, never both.
Shapes that the JSON parser refuses have no number of their own: they go with GEM-14, in declarations with GEM-23.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.gemini import parts, thinking, tools, turns
from segue.conformance.gemini.request import GeminiRequest, read
from segue.conformance.rule import Book

__all__ = ["BOOK", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "GEM-16": "Vertex's wording of GEM-15; reported there",
    "GEM-17": "says what is allowed: the documented dummies, which GEM-15 and GEM-18 take",
    "GEM-19": "a body alone does not show which endpoint made a signature, nor to which it goes",
    "GEM-20": "says what is allowed: no signature before Gemini 3; GEM-15 holds for newer models only",
    "GEM-22": "says what is allowed: thought parts may be sent back or left out",
    "GEM-25": "about reply streams; a request body holds no chunks",
    "GEM-26": "about replies; a request body holds no finishReason",
    "GEM-29": "about the OpenAI-compatible endpoint, whose bodies are Chat Completions",
}

BOOK: Book[GeminiRequest] = Book(
    "gemini", read, (*turns.table, *parts.table, *thinking.table, *tools.table), UNSHOWABLE
)

"""The rules of Anthropic Messages (ANT-*) that a request body can show.

Every rulebook number is either a check in one of the modules beside this one or a row of `UNSHOWABLE`, never both.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.anthropic import content, pairing, thinking, tools
from segue.conformance.anthropic.request import AnthropicRequest, read
from segue.conformance.rule import Book

__all__ = ["BOOK", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "ANT-06": "older wording of ANT-04 and ANT-05; reported under those numbers",
    "ANT-17": "says what is allowed: empty, blank or absent content of a tool_result",
    "ANT-21": "says what is allowed: the same role twice; pairing is judged on turns merged accordingly",
    "ANT-28": "a body alone does not show with which prefix a thinking block was made; ANT-26 checks the signature",
    "ANT-29": "a body alone does not show which model or account made a thinking block",
    "ANT-37": "about reply streams; a request body holds no deltas",
    "ANT-38": "about reply streams; a lost signature shows as ANT-26",
    "ANT-39": "about replies; a request body holds no stop_reason",
    "ANT-40": "text behind a tool_use is allowed, its results are judged by ANT-04 and ANT-05; reported there",
}

BOOK: Book[AnthropicRequest] = Book(
    "anthropic", read, (*pairing.table, *content.table, *thinking.table, *tools.table), UNSHOWABLE
)

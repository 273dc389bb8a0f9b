"""The rules of Amazon Bedrock Converse (BED-*) that a request body can show, and those of the model behind it.

Every rulebook number is either a check in one of the modules beside this one or a row of `UNSHOWABLE`, never both.
Claude and Mistral bring rules of their own, told by their own numbers (ANT-*, MIS-01).
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.bedrock import calls, claude, content
from segue.conformance.bedrock.request import BedrockRequest, read
from segue.conformance.rule import Book

__all__ = ["BOOK", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "BED-12": "about reply streams; a request body holds no deltas",
}

BOOK: Book[BedrockRequest] = Book(
    "bedrock", read, (*calls.table, *content.table, *claude.RULES), UNSHOWABLE, model_key="modelId"
)

"""The rules of the agents service of Azure AI Foundry (AZF-*) that a request body can show.

Every rulebook number is either a check in one of the modules beside this one or a row of `UNSHOWABLE`, never both.
Behind the service stands a model with the rules of Responses, told by their own numbers (OAI-RESP-*).
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.azure_foundry import backend, rules
from segue.conformance.azure_foundry.request import FoundryRequest, read
from segue.conformance.rule import Book

__all__ = ["BOOK", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "AZF-09": "says what is allowed: items without id or call_id; AZF-08 speaks about those that only replies hold",
    "AZF-12": "about reply streams; a request body holds no events",
    "AZF-13": "says what the service leaves to the model behind it; reported under OAI-RESP-01, 04, 05 and 25",
}

BOOK: Book[FoundryRequest] = Book("azure-foundry", read, (*rules.table, *backend.RULES), UNSHOWABLE)

"""The rules of Mistral's chat API (MIS-*), and those of Chat Completions that hold on its wire too.

The hosted API is the measure. Where rules follow the tokenizer, the name of the model tells its version by its date;
a name that does not tell is judged as the hosted API judges its newest: as v11 and later, with nine characters an id.
Every MIS number is either a check here or a row of `UNSHOWABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conformance.chat import ChatRequest, read
from segue.conformance.mistral import calls, content, keys, order
from segue.conformance.rule import Book

__all__ = ["BOOK", "UNSHOWABLE"]

UNSHOWABLE: Mapping[str, str] = {
    "MIS-16": "about reply streams; an id that comes again in a later turn is no fault of a request (MIS-06)",
}

BOOK: Book[ChatRequest] = Book("mistral", read, (*calls.table, *order.table, *content.table, *keys.table), UNSHOWABLE)

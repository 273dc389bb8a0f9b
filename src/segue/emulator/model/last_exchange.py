"""The last exchange: the user's text, the calls after it, and their results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct, UnsetType

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Text,
    ToolCall,
    ToolResponse,
    calls_of,
    join_texts,
    responses_of,
    state_of,
)
from segue.canonical.json import encode_json_text

__all__ = ["Exchange", "find_exchange", "format_result", "is_failure"]

_TAGGED = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)
_BRACKETED = re.compile(r"^\s*\[[^\[\]]*\]\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"\d+")
_WRAPPERS = frozenset({"content", "error", "output", "result", "text"})
_LOOKS_FAILED = re.compile(r'\s*(?:\[?error\b|\{"error"\s*:)', re.IGNORECASE)


class Exchange(Struct, frozen=True):
    """`words` are the human's; `calls` and `results` those since, in order, less what the provider ran itself."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResponse, ...] = ()

    def result(self, call: ToolCall) -> ToolResponse | None:
        """The newest result of a call."""
        return next((result for result in reversed(self.results) if result.call_id == call.id), None)

    def call(self, result: ToolResponse) -> ToolCall | None:
        return next((call for call in self.calls if call.id == result.call_id), None)


def find_exchange(messages: Sequence[Message]) -> Exchange:
    """The exchange that these messages end in.

    Words right after results are a question like any other, unless they are a client's reminder: many put one there
    each time, and whoever took that for a question would call tools for ever.
    """
    words = ""
    start = 0
    after_results = False
    heard = _SeenTexts()
    for index, message in enumerate(messages):
        if message.speaker == "system":
            continue
        after_results = after_results or any(not response.hosted for response in responses_of(message))
        said = _human_text(message) if message.speaker in ("human", "tool") else ""
        if said and (heard.is_new(said) if after_results else heard.add(said)):
            words, start = said, index + 1
        after_results = after_results and message.speaker != "ai"
    since = messages[start:]
    return Exchange(
        words,
        tuple(call for message in since for call in calls_of(message) if call.kind != "hosted"),
        tuple(result for message in since for result in responses_of(message) if _is_final(result)),
    )


class _SeenTexts:
    """What was said before, and what of it right after results."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._after_results: set[str] = set()

    def add(self, text: str) -> bool:
        self._words.add(text)
        return True

    def is_new(self, text: str) -> bool:
        """Whether words after results are no reminder: those stand in tags or brackets, or come again and again, be it
        with another number in them."""
        shape = _NUMBERS.sub("0", text)
        known = text in self._words or shape in self._after_results
        self._after_results.add(shape)
        return not known and bool(_BRACKETED.sub("", _TAGGED.sub("", text)).strip())


def _human_text(message: Message) -> str:
    """The human's words, less what a client put around them in tags, where anything is left then."""
    text = join_texts(block.text for block in message.blocks if isinstance(block, Text)).strip()
    return _TAGGED.sub(" ", text).strip() or text


def _is_final(result: ToolResponse) -> bool:
    return not result.hosted and not result.origin.is_approval and state_of(result) != "pending"


def format_result(result: ToolResponse) -> str:
    """What a result says, as one text."""
    if result.content:
        return join_texts(filter(None, map(_block_text, result.content)))
    structured: Any = result.structured
    if isinstance(structured, UnsetType) or structured is None:
        return ""
    if isinstance(structured, dict):
        # What wraps a text for an API that wants an object is not part of it.
        (key, only), *more = cast("dict[str, Any]", structured).items() or [("", None)]
        structured = only if key in _WRAPPERS and not more and isinstance(only, str) else cast("Any", structured)
    return structured if isinstance(structured, str) else encode_json_text(structured)


def is_failure(result: ToolResponse) -> bool:
    """Whether a result tells of a failure; an API without a mark for it has only the words."""
    return state_of(result) in ("error", "cancelled", "interrupted") or bool(_LOOKS_FAILED.match(format_result(result)))


def _block_text(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Code):
        return block.code
    return f"[{block.kind}]" if isinstance(block, Media) else ""

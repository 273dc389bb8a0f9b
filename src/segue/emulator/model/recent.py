"""What happened since the human last spoke: the words, the calls that followed, and what came back for them."""

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
    one_text,
    responses_of,
    state_of,
)
from segue.canonical.jsontext import write_text

__all__ = ["Exchange", "exchange_of", "failed", "result_text"]

_REMARK = re.compile(r"<([A-Za-z][\w-]*)>.*?</\1>", re.DOTALL)
_WRAPPERS = frozenset({"content", "error", "output", "result", "text"})
_LOOKS_FAILED = re.compile(r'\s*(?:\[?error\b|\{"error"\s*:)', re.IGNORECASE)


class Exchange(Struct, frozen=True):
    """`words` are the human's; `calls` and `results` those since, in order, less what the provider ran itself."""

    words: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResponse, ...] = ()

    def result(self, call: ToolCall) -> ToolResponse | None:
        """The newest result of a call."""
        return next((result for result in reversed(self.results) if result.call_id == call.id), None)

    def call(self, result: ToolResponse) -> ToolCall | None:
        return next((call for call in self.calls if call.id == result.call_id), None)


def exchange_of(messages: Sequence[Message]) -> Exchange:
    """The exchange that these messages end in.

    Words that stand right after results are a remark on them and begin nothing new: many clients put a reminder there
    each time, and whoever took that for a question would call tools for ever.
    """
    words = ""
    start = 0
    after_results = False
    for index, message in enumerate(messages):
        if message.speaker == "system":
            continue
        answers = any(not response.hosted for response in responses_of(message))
        said = _words_of(message) if message.speaker in ("human", "tool") else ""
        if said and not answers and not after_results:
            words, start = said, index
        after_results = answers or (after_results and message.speaker != "ai")
    since = messages[start:]
    return Exchange(
        words,
        tuple(call for message in since for call in calls_of(message) if call.kind != "hosted"),
        tuple(result for message in since for result in responses_of(message) if _is_told(result)),
    )


def _words_of(message: Message) -> str:
    """The human's words, less what a client put around them in tags, where anything is left then."""
    text = one_text(block.text for block in message.blocks if isinstance(block, Text)).strip()
    return _REMARK.sub(" ", text).strip() or text


def _is_told(result: ToolResponse) -> bool:
    return not result.hosted and not result.origin.is_approval and state_of(result) != "pending"


def result_text(result: ToolResponse) -> str:
    """What a result says, as one text."""
    if result.content:
        return one_text(filter(None, map(_text_of, result.content)))
    structured: Any = result.structured
    if isinstance(structured, UnsetType) or structured is None:
        return ""
    if isinstance(structured, dict):
        # What wraps a text for an API that wants an object is not part of it.
        (key, only), *more = cast("dict[str, Any]", structured).items() or [("", None)]
        structured = only if key in _WRAPPERS and not more and isinstance(only, str) else cast("Any", structured)
    return structured if isinstance(structured, str) else write_text(structured)


def failed(result: ToolResponse) -> bool:
    """Whether a result tells of a failure; an API without a mark for it has only the words."""
    return state_of(result) in ("error", "cancelled", "interrupted") or bool(_LOOKS_FAILED.match(result_text(result)))


def _text_of(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Code):
        return block.code
    return f"[{block.kind}]" if isinstance(block, Media) else ""

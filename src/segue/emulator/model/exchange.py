"""The last exchange of a conversation: the user's question, the calls after it, and their results; and its summary.

The summary has one line for each text, call and result. Asked what was said so far, the model answers with the user's
texts and the summary that it continues from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from segue.canonical.request import Request

_TAGGED = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)
_BRACKETED = re.compile(r"^\s*\[[^\[\]]*\]\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"\d+")
_WRAPPERS = frozenset({"content", "error", "output", "result", "text"})
_LOOKS_FAILED = re.compile(r'\s*(?:\[?error\b|\{"error"\s*:)', re.IGNORECASE)


class Exchange(Struct, frozen=True):
    """The newest question of the user, and the calls and results after it, without those of hosted tools."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResponse, ...] = ()

    def result(self, call: ToolCall) -> ToolResponse | None:
        """Return the newest result of a call."""
        return next((result for result in reversed(self.results) if result.call_id == call.id), None)

    def call(self, result: ToolResponse) -> ToolCall | None:
        return next((call for call in self.calls if call.id == result.call_id), None)


def find_exchange(messages: Sequence[Message]) -> Exchange:
    """Find the last exchange.

    Text right after results starts a new exchange, unless it is a reminder that the client adds after each result:
    calls for reminders would never end.
    """
    question = ""
    start = 0
    after_results = False
    seen = _SeenTexts()
    for index, message in enumerate(messages):
        if message.speaker == "system":
            continue
        after_results = after_results or any(not response.hosted for response in responses_of(message))
        text = _user_text(message) if message.speaker in ("human", "tool") else ""
        if text and (seen.is_question(text) if after_results else seen.add(text)):
            question, start = text, index + 1
        after_results = after_results and message.speaker != "ai"
    since = messages[start:]
    return Exchange(
        question,
        tuple(call for message in since for call in calls_of(message) if call.kind != "hosted"),
        tuple(result for message in since for result in responses_of(message) if _is_final(result)),
    )


class _SeenTexts:
    """The user texts so far, and the forms of those right after results."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._forms_after_results: set[str] = set()

    def add(self, text: str) -> bool:
        self._texts.add(text)
        return True

    def is_question(self, text: str) -> bool:
        """False for a reminder after results: all of it in tags or brackets, or repeated, also with other numbers."""
        form = _NUMBERS.sub("0", text)
        is_repeated = text in self._texts or form in self._forms_after_results
        self._forms_after_results.add(form)
        return not is_repeated and bool(_BRACKETED.sub("", _TAGGED.sub("", text)).strip())


def _user_text(message: Message) -> str:
    """Return the user's text without the tagged parts that a client adds, unless there is nothing else."""
    text = join_texts(block.text for block in message.blocks if isinstance(block, Text)).strip()
    return _TAGGED.sub(" ", text).strip() or text


def _is_final(result: ToolResponse) -> bool:
    return not result.hosted and not result.origin.is_approval and state_of(result) != "pending"


def format_result(result: ToolResponse) -> str:
    """Return the content of a result as one text."""
    if result.content:
        return join_texts(filter(None, map(_block_text, result.content)))
    structured: Any = result.structured
    if isinstance(structured, UnsetType) or structured is None:
        return ""
    if isinstance(structured, dict):
        # Some APIs require an object, so clients wrap a text in one.
        (key, only), *more = cast("dict[str, Any]", structured).items() or [("", None)]
        structured = only if key in _WRAPPERS and not more and isinstance(only, str) else cast("Any", structured)
    return structured if isinstance(structured, str) else encode_json_text(structured)


def is_failure(result: ToolResponse) -> bool:
    """Return whether the call failed, by its state or its text: some APIs have no field for failures."""
    return state_of(result) not in ("complete", "pending") or bool(_LOOKS_FAILED.match(format_result(result)))


def _block_text(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Code):
        return block.code
    return f"[{block.kind}]" if isinstance(block, Media) else ""


_HEADING = "Summary of the conversation so far."
_LONGEST = 2_000
_ASKS = re.compile(r"\bwhat (?:did|have) (?:I|we) sa(?:y|id)\b", re.IGNORECASE)
_SPEAKERS = {"human": "The user", "ai": "The assistant", "tool": "A tool"}


# ---------------------------------------------------------------------------------------------------------- the summary


def summarize(request: Request, earlier: str = "") -> str:
    """Return the summary of a conversation; `earlier` is that of the messages before it."""
    lines = (line for message in request.messages for line in _lines(message))
    return "\n".join([earlier or _HEADING, *lines])


def asks_for_history(text: str) -> bool:
    return _ASKS.search(text) is not None


def recall(request: Request) -> str:
    """Return what the user said in this conversation, as far as the model knows."""
    earlier = "\n".join(block.text for block in request.system if block.text.startswith(_HEADING))
    said = (line for message in request.messages if message.speaker == "human" for line in _lines(message))
    return "\n".join([*([earlier] if earlier else []), *said])


def _lines(message: Message) -> Iterator[str]:
    speaker = _SPEAKERS.get(message.speaker)
    for block in message.blocks if speaker else ():
        text = _describe(block)
        if text:
            shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST * 3 // 4]} … {text[-_LONGEST // 4 :]}"
            yield f"{speaker}: {shown}"


def _describe(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            return f"called {block.name} with {block.arguments_text or encode_json_text(block.arguments)}"
        case ToolResponse():
            return f"returned {format_result(block)}"
        case _:
            return ""

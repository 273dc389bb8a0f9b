"""The reply texts of the built-in model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.emulator.model.candidates import tokenize
from segue.emulator.model.last_exchange import Exchange, format_result, is_failure
from segue.emulator.steps import CallStep

__all__ = [
    "BEFORE_CALLS",
    "NO_TOOL_THOUGHTS",
    "call_thoughts",
    "is_permanent_failure",
    "is_small_talk",
    "is_thanks",
    "reply_options",
    "result_reports",
    "short_argument",
    "shorten",
    "strip_error_mark",
    "waiting_text",
]

BEFORE_CALLS = ("", "Let me look.", "One moment, I will check.", "")
NO_TOOL_THOUGHTS = ("I can say this without looking anything up.", "This needs words only.")
_OPENINGS = ("Here is what I found", "This is what came back", "Here are the answers")
_LONGEST = 200
_GREETING = frozenset({"hello", "hi", "hey", "hola", "morning", "afternoon", "evening", "greeting", "howdy"})
_THANKS = frozenset({"thank", "thanks", "thx", "ty", "cheer", "bye", "goodbye"})
_FILLER_TEXT = """
    a all again good day there everyone much so very you lot for your help that great ok okay nice perfect cool and
    the to see how are today my friend dear claude gemini gpt mistral kimi qwen assistant wonderful yes no sure fine it
    works
"""
_FILLERS = frozenset(_FILLER_TEXT.split()) | frozenset(tokenize(_FILLER_TEXT))
_MARK = re.compile(r"^\s*\[?error\]?:?\s*", re.IGNORECASE)
_FINAL = re.compile(
    r"not found|no such|denied|forbidden|not allowed|permission|unauthori[sz]ed|invalid|unknown|does ?n[o']t exist"
    r"|reject|cancel|refus|declin|interrupt|not supported|missing",
    re.IGNORECASE,
)


def is_small_talk(text: str) -> bool:
    """Whether it is a greeting or thanks and nothing else."""
    said = tokenize(text)
    known = _GREETING | _THANKS | _FILLERS
    return 0 < len(said) <= 10 and any(word in _GREETING | _THANKS for word in said) and known.issuperset(said)


def is_thanks(text: str) -> bool:
    return bool(_THANKS.intersection(tokenize(text)))


def is_permanent_failure(text: str) -> bool:
    """Whether a failure reads as one that another try won't mend."""
    return _FINAL.search(text) is not None


def call_thoughts(calls: Sequence[CallStep], *, retried: bool) -> tuple[str, ...]:
    names = _join_names(dict.fromkeys(call.name for call in calls))
    if retried:
        return (f"{names} failed; I try that once more.", f"That did not work. Once more: {names}.")
    if len(calls) == 1:
        return (f"{names} can tell me that.", f"I need {names} for this.", f"The way to know is {names}.")
    return (f"{len(calls)} calls of {names}: none needs the other, so they go together.", f"I can ask {names} at once.")


def waiting_text(calls: Sequence[ToolCall]) -> str:
    return f"I am still waiting for {_join_names(dict.fromkeys(call.name for call in calls))}."


def reply_options(text: str, *, tools: bool) -> tuple[str, ...]:
    """What is said where no tool is used."""
    if is_small_talk(text):
        if is_thanks(text):
            return ("You are welcome!", "Glad to help.", "Any time.")
        return ("Hello! What can I do for you?", "Hi! How can I help?", "Hello! What shall we look at?")
    if not text:
        return ("I am here. What can I do for you?",)
    about = f"“{shorten(text, 120)}”"
    without = "I was not asked to use a tool" if tools else "I have no tools here"
    return (
        f"You said {about}. {without}, so this is all that I can say about it.",
        f"About {about}: {without}, so I can answer in words only.",
        f"I have read {about}. {without}, so there is nothing that I could look up.",
    )


# ------------------------------------------------------------------------------------------------------------- results


def result_reports(exchange: Exchange) -> tuple[str, ...]:
    """All results in words, to choose from."""
    told = list(_describe_results(exchange))
    if len(told) > 1:
        lines = "\n".join(f"- {_result_line(*one)}" for one in told)
        return tuple(f"{opening}:\n{lines}" for opening in _OPENINGS)
    ((subject, text, bad),) = told
    if bad or not text:
        return (
            (f"I am sorry, this did not work: {_result_line(subject, text, bad)}",)
            if bad
            else (_result_line(subject, text, bad),)
        )
    return (f"{subject} says: {text}", f"According to {subject}: {text}", f"Here is what {subject} gave: {text}")


def _describe_results(exchange: Exchange) -> Iterator[tuple[str, str, bool]]:
    """What each result is of, what it says, and whether that is a failure. A second try tells of the first."""
    tries: dict[str, list[tuple[ToolCall | None, ToolResponse]]] = {}
    for index, result in enumerate(exchange.results):
        call = exchange.call(result)
        key = f"{call.name} {call.arguments!r}" if call else f"{index}"
        before = tries.get(key)
        if before and is_failure(before[-1][1]):
            before.append((call, result))
        else:
            tries[f"{index} {key}" if before else key] = [(call, result)]
    for tried in tries.values():
        call, result = tried[-1]
        name = (call.name if call else result.name) or "the tool"
        about = short_argument(call.arguments) if call else ""
        again = ", at the second try," if len(tried) > 1 else ""
        bad = is_failure(result)
        text = shorten(strip_error_mark(format_result(result)) if bad else format_result(result))
        yield f"{name} ({about}){again}" if about else f"{name}{again}", text, bad


def strip_error_mark(text: str) -> str:
    """A failure's words, less that it is one."""
    return _MARK.sub("", text)


def _result_line(subject: str, text: str, bad: bool) -> str:
    if bad:
        return f"{subject} failed: {text}" if text else f"{subject} failed."
    return f"{subject.removesuffix(',')}: {text}" if text else f"{subject} came back empty."


def short_argument(value: Any) -> str:
    """The argument that tells a call from others, where there is a short one."""
    values: Iterable[Any] = cast("dict[str, Any]", value).values() if isinstance(value, dict) else [value]
    texts = [str(one) for one in values if isinstance(one, str | int | float) and not isinstance(one, bool)]
    return ", ".join(shorten(text, 40) for text in texts[:2] if text.strip())


def shorten(text: str, longest: int = _LONGEST) -> str:
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return f"{head[: head.rfind(' ')] if head.rfind(' ') > longest // 2 else head}…"


def _join_names(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last

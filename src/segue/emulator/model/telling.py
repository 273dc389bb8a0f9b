"""The reply texts of the built-in model at a workbench: tool results by line, or what it can do."""

from __future__ import annotations

import re

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.emulator.model import speech
from segue.emulator.model.asks import parted
from segue.emulator.model.bench import Bench
from segue.emulator.model.demands import asks_for_change
from segue.emulator.model.lookups import wanted_file
from segue.emulator.model.recent import Exchange, failed, result_text

__all__ = ["replies", "reports"]

_LINES, _CHARACTERS, _WIDTH = 12, 1_200, 200
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→)", re.MULTILINE)
_ABOUT_ME = re.compile(
    r"^\s*(?:who are you|what are you|(?:what|which) model\b.*|what can (?:you|i) (?:do|ask)"
    r"|help(?: me)?)\s*[?.!]*\s*$",
    re.IGNORECASE,
)
_WHO = (
    "I am segue's emulated model, not a real one",
    "This is an emulated model, not a real one",
)
_CAN = (
    "I can only use the tools: name a file, a folder, a text to look for, an address or a command, or ask what this "
    "project does. With a provider's key a real model answers."
)


def replies(words: str) -> tuple[str, ...]:
    """What is said where no tool is for it. Who only says hello is told what can be asked."""
    if speech.is_small_talk(words):
        opening = speech.replies(words, tools=True)
        if speech.is_thanks(words):
            return opening
        return tuple(f"Hello! {who}. {_CAN}" for who in _WHO)
    if _ABOUT_ME.search(words):
        return tuple(f"{who}. {_CAN}" for who in _WHO)
    ask, given = parted(words)
    about = f"“{speech.short(ask, 120)}”" if ask else "nothing"
    if not given:
        return tuple(f"{who}, so I can't answer {about} by myself. {_CAN}" for who in _WHO)
    lines = given.splitlines()
    first = speech.short(next(line for line in lines if line.strip()), 120)
    amount = "one line" if len(lines) == 1 else f"{len(lines):,} lines, the first"
    return tuple(
        f"{who}, so I can't do this by myself. I was asked {about} and was given {amount}: “{first}”. {_CAN}"
        for who in _WHO
    )


# ------------------------------------------------------------------------------------------------------------- results


def reports(exchange: Exchange, bench: Bench) -> tuple[str, ...]:
    """All results, one after the other."""
    told = [_report(exchange.call(result), result, bench) for result in exchange.results]
    roles = {bench.role_of(call.name) for call in exchange.calls}
    sought = wanted_file(exchange.words)
    if sought and roles == {"list"} and not any(map(failed, exchange.results)):
        told.append(f"No {sought} is among them.")
    if asks_for_change(exchange.words) and roles <= {"read", "list", "glob", "grep", "fetch"}:
        told.append(
            f"That is all, and nothing was changed or run: {_WHO[0]}, and can only do what the words spell out."
        )
    return ("\n\n".join(told),)


def _report(call: ToolCall | None, result: ToolResponse, bench: Bench) -> str:
    name = (call.name if call else result.name) or "the tool"
    role = bench.role_of(name)
    about = speech.argument(call.arguments) if call else ""
    subject = f"{name} ({about})" if about else name
    text = result_text(result).strip("\n")
    if failed(result):
        why = speech.short(speech.without_mark(text)) or "no word why"
        return f"I am sorry, this did not work: {subject} failed: {why}"
    if not text.strip():
        return f"{subject} came back empty."
    if role == "read":
        plain = _NUMBERED.sub("", text)
        part = _first(plain)
        return f"{about or subject} {'says' if part == plain else 'begins'}:\n\n{part}"
    if role == "list":
        return f"{'In ' + about if about.strip('./') else 'In this folder'} there is:\n\n{_first(text)}"
    part = _first(text)
    return f"{subject} says:{' ' if len(part.splitlines()) == 1 else chr(10) * 2}{part}"


def _first(text: str) -> str:
    """The first lines, and how many more there are."""
    lines = text.splitlines()
    kept: list[str] = []
    for line in lines[:_LINES]:
        if sum(map(len, kept)) > _CHARACTERS:
            break
        kept.append(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…")
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"… and {left:,} more line{'s' if left > 1 else ''}"] if left else kept)

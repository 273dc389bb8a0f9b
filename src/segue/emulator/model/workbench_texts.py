"""The reply texts of the built-in model at a workbench: tool results by line, or what it can do."""

from __future__ import annotations

import re

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.emulator.model import reply_texts
from segue.emulator.model.action_intents import needs_change
from segue.emulator.model.last_exchange import Exchange, format_result, is_failure
from segue.emulator.model.lookup_intents import find_well_known_file
from segue.emulator.model.user_request import split_attachment
from segue.emulator.model.workbench import Workbench

__all__ = ["reply_options", "result_reports"]

_LINES, _CHARACTERS, _WIDTH = 12, 1_200, 200
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→)", re.MULTILINE)
_ABOUT_ME = re.compile(
    r"^\s*(?:who are you|what are you|(?:what|which) model\b.*|what can (?:you|i) (?:do|ask)"
    r"|help(?: me)?)\s*[?.!]*\s*$",
    re.IGNORECASE,
)
_SELF_DESCRIPTIONS = (
    "I am segue's emulated model, not a real one",
    "This is an emulated model, not a real one",
)
_ABILITIES = (
    "I can only use the tools: name a file, a folder, a text to look for, an address or a command, or ask what this "
    "project does. With a provider's key a real model answers."
)


def reply_options(text: str) -> tuple[str, ...]:
    """What is said where no tool is for it. Who only says hello is told what can be asked."""
    if reply_texts.is_small_talk(text):
        opening = reply_texts.reply_options(text, tools=True)
        if reply_texts.is_thanks(text):
            return opening
        return tuple(f"Hello! {who}. {_ABILITIES}" for who in _SELF_DESCRIPTIONS)
    if _ABOUT_ME.search(text):
        return tuple(f"{who}. {_ABILITIES}" for who in _SELF_DESCRIPTIONS)
    ask, given = split_attachment(text)
    about = f"“{reply_texts.shorten(ask, 120)}”" if ask else "nothing"
    if not given:
        return tuple(f"{who}, so I can't answer {about} by myself. {_ABILITIES}" for who in _SELF_DESCRIPTIONS)
    lines = given.splitlines()
    first = reply_texts.shorten(next(line for line in lines if line.strip()), 120)
    amount = "one line" if len(lines) == 1 else f"{len(lines):,} lines, the first"
    return tuple(
        f"{who}, so I can't do this by myself. I was asked {about} and was given {amount}: “{first}”. {_ABILITIES}"
        for who in _SELF_DESCRIPTIONS
    )


# ------------------------------------------------------------------------------------------------------------- results


def result_reports(exchange: Exchange, bench: Workbench) -> tuple[str, ...]:
    """All results, one after the other."""
    told = [_result_report(exchange.call(result), result, bench) for result in exchange.results]
    roles = {bench.role_of(call.name) for call in exchange.calls}
    sought = find_well_known_file(exchange.text)
    if sought and roles == {"list"} and not any(map(is_failure, exchange.results)):
        told.append(f"No {sought} is among them.")
    if needs_change(exchange.text) and roles <= {"read", "list", "glob", "grep", "fetch"}:
        told.append(
            f"That is all, and nothing was changed or run: {_SELF_DESCRIPTIONS[0]}, "
            "and can only do what the words spell out."
        )
    return ("\n\n".join(told),)


def _result_report(call: ToolCall | None, result: ToolResponse, bench: Workbench) -> str:
    name = (call.name if call else result.name) or "the tool"
    role = bench.role_of(name)
    about = reply_texts.short_argument(call.arguments) if call else ""
    subject = f"{name} ({about})" if about else name
    text = format_result(result).strip("\n")
    if is_failure(result):
        why = reply_texts.shorten(reply_texts.strip_error_mark(text)) or "no word why"
        return f"I am sorry, this did not work: {subject} failed: {why}"
    if not text.strip():
        return f"{subject} came back empty."
    if role == "read":
        plain = _NUMBERED.sub("", text)
        part = _first_lines(plain)
        return f"{about or subject} {'says' if part == plain else 'begins'}:\n\n{part}"
    if role == "list":
        return f"{'In ' + about if about.strip('./') else 'In this folder'} there is:\n\n{_first_lines(text)}"
    part = _first_lines(text)
    return f"{subject} says:{' ' if len(part.splitlines()) == 1 else chr(10) * 2}{part}"


def _first_lines(text: str) -> str:
    """The first lines, and how many more there are."""
    lines = text.splitlines()
    kept: list[str] = []
    for line in lines[:_LINES]:
        if sum(map(len, kept)) > _CHARACTERS:
            break
        kept.append(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…")
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"… and {left:,} more line{'s' if left > 1 else ''}"] if left else kept)

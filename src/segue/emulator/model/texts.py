"""The reply texts of the built-in model: before calls, about results, and without a tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.emulator.model.exchange import Exchange, format_result, is_failure
from segue.emulator.model.file_tools import CHANGING_ROLES, FileTools, needs_change, split_attachment
from segue.emulator.model.prompt_values import tokenize
from segue.emulator.steps import CallStep
from segue.errors import format_count

BEFORE_CALLS = ("", "Let me look.", "One moment, I will check.", "")
NO_TOOL_THOUGHTS = ("I can say this without looking anything up.", "This needs words only.")
_OPENINGS = ("Here is what I found", "This is what I found", "Here are the answers")
_GREETINGS = frozenset({"hello", "hi", "hey", "hola", "morning", "afternoon", "evening", "howdy"})
_THANKS = frozenset({"thank", "thanks", "thx", "cheer", "bye", "goodbye"})
_FILLERS = frozenset(tokenize("a all again good there everyone much so very you lot for your help that great ok nice"))
_ERROR_MARK = re.compile(r"^\s*\[?error\]?:?\s*", re.IGNORECASE)
# What Codex prints before the output of a command.
_COMMAND_HEAD = re.compile(r"\A(?:Chunk ID|Script completed|Wall time|Exit code)\b.*?\nOutput:\n", re.DOTALL)
_SCRIPT_COMMAND = re.compile(r'exec_command\(\{cmd: ("(?:[^"\\]|\\.)*")')
_LINE_NUMBERS = re.compile(r"^\s*\d+(?:\t|→)", re.MULTILINE)
_MAX_LENGTH, _MAX_LINES, _MAX_CHARACTERS = 200, 12, 1_200
_SELF_DESCRIPTIONS = ("I am segue's emulated model, not a real one", "This is an emulated model, not a real one")
_ABILITIES = (
    "I can only use the tools: name a file, a folder, a text to look for, an address or a command, or ask what this "
    "project does. With a provider's key a real model answers."
)


def is_small_talk(text: str) -> bool:
    """Return whether the text is a greeting or thanks and nothing else."""
    words = set(tokenize(text))
    return bool(words & (_GREETINGS | _THANKS)) and words <= _GREETINGS | _THANKS | _FILLERS


def call_thoughts(calls: Sequence[CallStep], *, retried: bool) -> tuple[str, ...]:
    names = _join_names(call.name for call in calls)
    if retried:
        return (f"{names} failed; I try that once more.", f"That did not work. Once more: {names}.")
    if len(calls) == 1:
        return (f"{names} can tell me that.", f"I need {names} for this.", f"The way to know is {names}.")
    return (f"{len(calls)} calls of {names}: none needs the other, so they go together.", f"I can ask {names} at once.")


def waiting_text(calls: Sequence[ToolCall]) -> str:
    return f"I am still waiting for {_join_names(call.name for call in calls)}."


def replies_without_tool(text: str, *, has_tools: bool, file_tools: bool) -> tuple[str, ...]:
    if is_small_talk(text) and _THANKS.intersection(tokenize(text)):
        return ("You are welcome!", "Glad to help.", "Any time.")
    if file_tools:
        return _file_tool_replies(text)
    if is_small_talk(text):
        return ("Hello! What can I do for you?", "Hi! How can I help?", "Hello! What shall we look at?")
    if not text:
        return ("I am here. What can I do for you?",)
    about = f"“{_shorten(text, 120)}”"
    without = "I was not asked to use a tool" if has_tools else "I have no tools here"
    return (
        f"You said {about}. {without}, so this is all that I can say about it.",
        f"About {about}: {without}, so I can answer in words only.",
        f"I have read {about}. {without}, so there is nothing that I could look up.",
    )


def _file_tool_replies(text: str) -> tuple[str, ...]:
    if is_small_talk(text):
        return tuple(f"Hello! {description}. {_ABILITIES}" for description in _SELF_DESCRIPTIONS)
    question, attachment = split_attachment(text)
    about = f"so I can't answer “{_shorten(question, 120)}” by myself."
    if attachment:
        lines = attachment.splitlines()
        amount = "one line" if len(lines) == 1 else f"{len(lines):,} lines, the first"
        about += f" I was given {amount}: “{_shorten(lines[0], 120)}”."
    return tuple(f"{description}, {about} {_ABILITIES}" for description in _SELF_DESCRIPTIONS)


# ------------------------------------------------------------------------------------------------------------- results


def result_reports(exchange: Exchange, file_tools: FileTools | None) -> tuple[str, ...]:
    """Return reports of all results: those of file tools by line, others in one line each."""
    results = _newest_results(exchange)
    roles = [None if file_tools is None else file_tools.role_of(call.name if call else "") for call, _, _ in results]
    if any(roles):
        reports = [_file_report(*row, role) for row, role in zip(results, roles, strict=True)]
        if needs_change(exchange.text) and not CHANGING_ROLES.intersection(roles):
            reports.append(f"Nothing was changed or run: {_SELF_DESCRIPTIONS[0]}, and needs a command with all values.")
        return ("\n\n".join(reports),)
    if len(results) > 1:
        subjects = [_short_argument(call) for call, _, _ in results]
        is_clear = all(subjects) and len(set(subjects)) == len(subjects)
        lines = "\n".join(f"- {_report(*row, names_tool=not is_clear)}" for row in results)
        return tuple(f"{opening}:\n{lines}" for opening in _OPENINGS)
    ((call, result, tries),) = results
    text = _shorten(format_result(result))
    if is_failure(result) or not text:
        return (_apologise(_report(call, result, tries), result),)
    argument = _short_argument(call)
    answer = f"{argument}: {text}" if argument and argument not in text else text
    return (answer, f"I looked it up. {answer}", f"Here you are. {answer}")


def _newest_results(exchange: Exchange) -> list[tuple[ToolCall | None, ToolResponse, int]]:
    """Return the calls with their results and the number of tries; of a call that was retried only the newest."""
    found: dict[str, tuple[ToolCall | None, ToolResponse, int]] = {}
    for result in exchange.results:
        call = exchange.call(result)
        key = f"{call.name} {encode_json_text(call.arguments)}" if call else result.call_id
        found[key] = (call, result, found[key][2] + 1 if key in found else 1)
    return list(found.values())


def _subject(call: ToolCall | None, result: ToolResponse, tries: int) -> str:
    name = (call.name if call else result.name) or "the tool"
    argument = _short_argument(call)
    retried = ", at the second try," if tries > 1 else ""
    return f"{name} ({argument}){retried}" if argument else f"{name}{retried}"


def _report(call: ToolCall | None, result: ToolResponse, tries: int, *, names_tool: bool = True) -> str:
    subject, text = _subject(call, result, tries), _shorten(_ERROR_MARK.sub("", format_result(result)))
    if is_failure(result):
        return f"{subject} failed: {text}" if text else f"{subject} failed."
    text = _shorten(format_result(result))
    if not names_tool and text:
        return f"{_short_argument(call)}: {text}"
    return f"{subject.removesuffix(',')}: {text}" if text else f"{subject} came back empty."


def _file_report(call: ToolCall | None, result: ToolResponse, tries: int, role: str | None) -> str:
    text = _COMMAND_HEAD.sub("", format_result(result), count=1).strip("\n")
    if is_failure(result) or not text.strip():
        return _apologise(_report(call, result, tries), result)
    argument = _short_argument(call)
    if role == "read":
        plain = _LINE_NUMBERS.sub("", text)
        lines = _first_lines(plain)
        return f"{argument} {'says' if lines == plain else 'begins'}:\n\n{lines}"
    lines = _first_lines(text)
    if role == "list":
        place = argument if argument.strip("./") else "this folder"
        return f"In {place} there is:\n\n{lines}"
    if role in ("write", "edit"):
        return lines[0].upper() + lines[1:]
    separator = "\n\n" if "\n" in lines else " "
    verb = "printed" if role == "shell" else "gave"
    return f"`{argument}` {verb}:{separator}{lines}"


def _apologise(report: str, result: ToolResponse) -> str:
    return f"I am sorry, this did not work: {report}" if is_failure(result) else report


def _short_argument(call: ToolCall | None) -> str:
    """Return the first two arguments that are texts or numbers, shortened; of a script, the command that it runs."""
    arguments: Any = None if call is None else call.arguments
    if found := _SCRIPT_COMMAND.search(_free_text(arguments)):
        arguments = json.loads(found[1])
    values: Iterable[Any] = cast("dict[str, Any]", arguments).values() if isinstance(arguments, dict) else [arguments]
    texts = [str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]
    return ", ".join(_shorten(text, 40) for text in texts[:2] if text.strip())


def _free_text(arguments: Any) -> str:
    """Return the text of a call of a tool that takes free text, which some APIs get as the argument `input`."""
    text: Any = cast("dict[str, Any]", arguments).get("input", "") if isinstance(arguments, dict) else arguments
    return text if isinstance(text, str) else ""


def _first_lines(text: str) -> str:
    """Return the first lines, and the number of lines after them."""
    lines = text.splitlines()
    kept: list[str] = []
    for line in lines[:_MAX_LINES]:
        if sum(map(len, kept)) > _MAX_CHARACTERS:
            break
        kept.append(line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH - 1]}…")
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"… and {format_count(left, 'more line')}"] if left else kept)


def _shorten(text: str, longest: int = _MAX_LENGTH) -> str:
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return f"{head[: head.rfind(' ')] if head.rfind(' ') > longest // 2 else head}…"


def _join_names(names: Iterable[str]) -> str:
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} and {last}" if first else last

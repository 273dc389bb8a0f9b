"""Parses scripts: the steps of a model's replies, line by line. Each turn is one reply, in the order of the requests.

```
# a comment; `---` separates turns
think  Two lookups, none needs the other.
say    Let me look.
call   get_weather {"city": "Lisbon"}
call[call_7]  get_time {"zone": "Europe/Lisbon"}
---
wait   0.5
say    In Lisbon it is {get_weather},
       at {get_time}.
---
error  429 Slow down, please. (retry after 2)
---
say    This will be cut o
cut    reset
---
call   write_file {"path": "a
end    length
```

An indented line continues the one before. `{tool}` is the newest result of that tool, `{{` and `}}` are braces.
Arguments that are not JSON are sent unchanged; an API that sends arguments as an object sends an empty one.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NoReturn

from msgspec import UNSET, Struct
from msgspec.structs import replace

from segue.canonical.blocks import responses_of
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.canonical.request import Finish, Request
from segue.emulator.model.exchange import format_result
from segue.emulator.steps import CallStep, CutStep, EndStep, ErrorStep, ReplySteps, Step, TextStep, ThinkStep, WaitStep
from segue.errors import InputError, require_string

_HEAD = re.compile(r"(?P<word>[^\s\[]+)(?:\[(?P<id>[^\]]*)\])?(?:[ \t]+(?P<rest>.*))?", re.DOTALL)
_CALL = re.compile(r"(?P<name>[^\s{\[]+)\s*(?P<arguments>.*)", re.DOTALL)
_ERROR = re.compile(r"(?P<status>\S+)\s*(?P<message>.*?)\s*(?:\(retry after (?P<seconds>[^)]*)\))?", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
_FINISH_NAMES: dict[str, Finish] = {"stop": "stop", "length": "length", "filter": "filter", "pause": "pause"}


class Script(Struct, frozen=True):
    turns: tuple[ReplySteps, ...]
    name: str = "script"

    @classmethod
    def parse(cls, text: str, name: str = "script") -> Script:
        require_string(text, "script")
        return cls(_Parser(name).turns(text), name)


class _Line(Struct):
    """A line with its continuation lines."""

    number: int
    head: str
    more: list[str] = []

    @property
    def text(self) -> str:
        if not self.more:
            return self.head
        return f"{self.head}\n{textwrap.dedent(chr(10).join(self.more))}"


class _Parser:
    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 0
        self._step_parsers: dict[str, Callable[[str], Step]] = {
            "say": TextStep,
            "think": ThinkStep,
            "call": self._call,
            "wait": self._wait,
            "error": self._error,
            "cut": self._cut,
            "end": self._end,
        }

    def turns(self, text: str) -> tuple[ReplySteps, ...]:
        turns: list[ReplySteps] = []
        steps: list[Step] = []
        for line in self._lines(text):
            self._number = line.number
            if line.head.strip("-") or len(line.head) < 3:
                if steps and isinstance(steps[-1], CutStep | EndStep | ErrorStep):
                    word = {CutStep: "cut", EndStep: "end", ErrorStep: "error"}[type(steps[-1])]
                    self._fail(f"nothing can follow `{word}` in its turn; `---` begins the next one")
                steps.append(self._step(line))
            elif not steps:
                self._fail("the turn before this `---` has no steps; a bare `say` is an empty reply")
            else:
                turns.append(tuple(steps))
                steps = []
        if steps:
            turns.append(tuple(steps))
        if not turns:
            raise InputError("the script has no turns; a line such as `say Hello.` was expected", path=self._name)
        return tuple(turns)

    def _lines(self, text: str) -> list[_Line]:
        """Return the lines without comments and blanks. Blank lines inside a text belong to it."""
        lines: list[_Line] = []
        empty = 0
        for number, raw in enumerate(textwrap.dedent(text.removeprefix("\ufeff")).split("\n"), start=1):
            raw = raw.rstrip()
            if not raw:
                empty += 1
            elif raw.startswith("#"):
                continue
            elif not raw[0].isspace():
                lines.append(_Line(number, raw))
                empty = 0
            else:
                if not lines or not lines[-1].head.strip("-"):
                    self._number = number
                    self._fail("this line is indented, but its turn has no line before it to continue")
                lines[-1].more += [*[""] * empty, raw]
                empty = 0
        return lines

    def _step(self, line: _Line) -> Step:
        head = _HEAD.fullmatch(line.text)
        word = head["word"] if head else line.head
        reader = self._step_parsers.get(word)
        if head is None or reader is None:
            self._fail(
                f"unknown step `{word}`{_suggest(word, self._step_parsers)}; "
                f"known steps: {_join_names(self._step_parsers)}"
            )
        rest = head["rest"] or ""
        if head["id"] is not None:
            if word != "call" or not head["id"].strip():
                self._fail("only `call` takes an id in brackets, as in `call[call_1] get_weather {}`")
            return replace(self._call(rest), id=head["id"].strip())
        if line.more and word in ("wait", "cut", "end"):
            self._fail(f"`{word}` takes one line, but the next one is indented")
        return reader(rest)

    # ---------------------------------------------------------------------------------------------------------- steps

    def _call(self, rest: str) -> CallStep:
        found = _CALL.fullmatch(rest.strip())
        if found is None:
            self._fail('the name of a tool was expected, as in `call get_weather {"city": "Lisbon"}`')
        value, text = parse_argument_text(found["arguments"])
        if not found["arguments"] or text is None:
            return CallStep(found["name"], value)
        return CallStep(found["name"], text=text)

    def _wait(self, rest: str) -> WaitStep:
        return WaitStep(self._seconds(_COMMENT.sub("", rest).strip(), "as in `wait 0.5`"))

    def _error(self, rest: str) -> ErrorStep:
        found = _ERROR.fullmatch(rest.strip())
        if found is None or not re.fullmatch(r"[45]\d\d", found["status"], re.ASCII):
            seen = f", not `{found['status']}`" if found else ""
            self._fail(f"an HTTP status from 400 to 599 was expected{seen}, as in `error 429 Slow down.`")
        seconds = found["seconds"]
        after = None if seconds is None else self._seconds(seconds.strip(), "as in `(retry after 2)`")
        return ErrorStep(int(found["status"]), found["message"] or None, after)

    def _cut(self, rest: str) -> CutStep:
        how = _COMMENT.sub("", rest).strip()
        if how not in ("", "end", "reset"):
            self._fail(f"`cut` or `cut reset` was expected, not `cut {how}`{_suggest(how, ('end', 'reset'))}")
        return CutStep("reset" if how == "reset" else "end")

    def _end(self, rest: str) -> EndStep:
        why = _COMMENT.sub("", rest).strip()
        if why not in _FINISH_NAMES:
            seen = f", not `{why}`" if why else ""
            self._fail(
                f"{_join_names(_FINISH_NAMES, 'or')} was expected after `end`{seen}{_suggest(why, _FINISH_NAMES)}"
            )
        return EndStep(_FINISH_NAMES[why])

    def _seconds(self, text: str, example: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds >= 0):
            seen = f", not `{text}`" if text else ""
            self._fail(f"a number of seconds was expected{seen}, {example}")
        return seconds

    def _fail(self, message: str) -> NoReturn:
        raise InputError(message, path=f"{self._name}, line {self._number}")


def _suggest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word.lower().strip(":"), list(known), n=1, cutoff=0.5)
    return f"; did you mean `{near[0]}`?" if near else ""


def _join_names(text: Iterable[str], joint: str = "and") -> str:
    *first, last = [f"`{word}`" for word in text]
    return f"{', '.join(first)} {joint} {last}"


# -------------------------------------------------------------------------------------------------------- placeholders


def fill_placeholders(turn: ReplySteps, request: Request) -> ReplySteps:
    """Replace placeholders with the results of the request; arguments of custom tools become text."""
    results = {
        result.name: format_result(result)
        for message in request.messages
        for result in responses_of(message)
        if result.name and (result.content is not None or result.structured is not UNSET)
    }
    custom_tools = {tool.name for tool in request.tools if tool.kind == "custom"}

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: _fill_placeholder(match[0], match[1], results), text)

    steps: list[Step] = []
    for step in turn:
        if isinstance(step, TextStep | ThinkStep):
            step = replace(step, text=fill(step.text))
        elif isinstance(step, CallStep) and step.name in custom_tools and step.text is None:
            text = step.arguments if isinstance(step.arguments, str) else encode_json_text(step.arguments)
            step = replace(step, arguments=UNSET, text=text)
        steps.append(step)
    return tuple(steps)


def _fill_placeholder(placeholder: str, name: str | None, results: dict[str, str]) -> str:
    return placeholder[0] if name is None else results.get(name, placeholder)

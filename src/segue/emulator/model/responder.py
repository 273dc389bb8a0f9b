"""The built-in model: it calls the declared tools and reports their results.

Replies are a function of the request and the seed. Every tool loop ends: after results comes text, except for one retry
of failed calls and one look into a project's README, unless there is a new question or `tool_choice` forces a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from msgspec import Struct

from segue.canonical.blocks import text_of
from segue.canonical.json import encode_json_text
from segue.canonical.request import Options, Request, Tool
from segue.emulator.model import texts
from segue.emulator.model.arguments import is_valid, make_arguments, make_free_text
from segue.emulator.model.exchange import Exchange, asks_for_history, find_exchange, format_result, is_failure, recall
from segue.emulator.model.file_tools import CHANGING_ROLES, FileTools, find_file_tools
from segue.emulator.model.tool_match import find_mentioned_tools, select_tools
from segue.emulator.steps import CallStep, EndStep, ReplySteps, Step, TextStep, ThinkStep

_MAX_CALLS = 4
_CHARACTERS_PER_TOKEN = 4
_decode_json = json.JSONDecoder().raw_decode
_PERMANENT_FAILURE = re.compile(
    r"not found|no such|denied|forbidden|not allowed|permission|unauthori[sz]ed|invalid|unknown|does ?n[o']t exist"
    r"|reject|cancel|refus|declin|interrupt|not supported|missing",
    re.IGNORECASE,
)
# What a prompt says before a schema that is not in the request's options.
_SCHEMA_MARK = "JSON Schema"
# What a coding client asks for the list of its sessions: the prompt in it is not to be carried out.
_TITLE_REQUEST = re.compile(r"(?:generate|write|create|suggest)\b[^.\n]{0,60}\btitle\b", re.IGNORECASE)


def make_reply_steps(request: Request, *, seed: int = 0) -> ReplySteps:
    responder = _Responder(request, find_exchange(request.messages), seed, find_file_tools(request.tools))
    return _apply_limits(responder.steps(), request.options)


class _Responder(Struct):
    request: Request
    exchange: Exchange
    seed: int
    file_tools: FileTools | None

    def steps(self) -> list[Step]:
        tools = self._callable_tools()
        calls = self._calls(tools) if tools else []
        reasoning = self.request.options.reasoning
        thinks = reasoning is None or (reasoning.enabled is not False and reasoning.effort != "none")
        if not calls:
            thought = [ThinkStep(self._pick(texts.NO_TOOL_THOUGHTS))] if thinks and reasoning is not None else []
            return [*thought, TextStep(self._reply_text())]
        steps: list[Step] = []
        if thinks:
            names = {call.name for call in calls}
            retried = any(call.name in names for call in self.exchange.calls)
            steps.append(ThinkStep(self._pick(texts.call_thoughts(calls, retried=retried))))
        text = self._pick(texts.BEFORE_CALLS)
        if text and not self._is_silent(calls) and not self._has_stop(text):
            steps.append(TextStep(text))
        return [*steps, *calls]

    def _has_stop(self, text: str) -> bool:
        return any(stop and stop in text for stop in self.request.options.stop or ())

    def _is_silent(self, calls: Iterable[CallStep]) -> bool:
        """Return whether no text precedes the calls: it would not be JSON, or they are forced or fetch nothing new."""
        form = self.request.options.response_format
        if self._is_forced() or (form is not None and form.kind != "text"):
            return True
        if self.file_tools is None:
            return False
        return bool(self.exchange.calls) or any(self.file_tools.role_of(call.name) in CHANGING_ROLES for call in calls)

    # ----------------------------------------------------------------------------------------------------------- calls

    def _callable_tools(self) -> list[Tool]:
        """Return the function and custom tools that `tool_choice` allows."""
        choice = self.request.options.tool_choice
        if choice is not None and choice.mode == "none":
            return []
        allowed = None if choice is None else (choice.name,) if choice.mode == "tool" else choice.allowed
        tools: dict[str, Tool] = {}
        for tool in self.request.tools:
            if tool.kind != "hosted" and (allowed is None or tool.name in allowed):
                tools.setdefault(tool.name, tool)
        return [*tools.values()]

    def _is_forced(self) -> bool:
        choice = self.request.options.tool_choice
        return choice is not None and choice.mode in ("tool", "required")

    def _calls(self, tools: list[Tool]) -> list[CallStep]:
        options, exchange = self.request.options, self.exchange
        is_forced = self._is_forced()
        if exchange.results or exchange.calls:
            calls = self._retry_failed(tools) or self._follow_up(tools)
            if not calls and is_forced:
                # A loop under `any` ends at the tool that returns the answer: each is called before any twice.
                made = {call.name for call in exchange.calls}
                calls = self._new_calls([tool for tool in tools if tool.name not in made] or tools, is_forced=True)[:1]
        elif is_forced or (exchange.text and not _needs_no_tool(exchange.text) and not self._is_asked_for_title()):
            calls = self._new_calls(tools, is_forced=is_forced)
        else:
            calls = []
        return calls[: 1 if options.parallel is False else _MAX_CALLS]

    def _is_asked_for_title(self) -> bool:
        return self.request.options.response_format is not None and bool(_TITLE_REQUEST.match(self.exchange.text))

    def _new_calls(self, tools: list[Tool], *, is_forced: bool) -> list[CallStep]:
        """Return the calls for the user's text: of file tools by its commands, of other tools by their declarations."""
        text = self.exchange.text
        if self.file_tools is None:
            return self._calls_of(select_tools(tools, text))
        names = {tool.name for tool in tools}
        calls = [call for call in self.file_tools.make_calls(text) if call.name in names]
        if calls:
            return calls
        others = [tool for tool in tools if tool in self.file_tools.other_tools]
        mentioned = find_mentioned_tools(others, text, other_tools=[tool for tool in tools if tool not in others])
        return self._calls_of(select_tools(mentioned or (tools if is_forced else []), text))

    def _calls_of(self, tools: Iterable[Tool]) -> list[CallStep]:
        """Return calls of these tools, as many of each as the text lists values; each tool once before any twice."""
        first: list[CallStep] = []
        others: list[CallStep] = []
        calls: list[CallStep] = []
        for tool in tools:
            for nth in range(_MAX_CALLS):
                call = self._call(tool, nth)
                if call in calls:
                    break
                calls.append(call)
                (others if nth else first).append(call)
        kept = [*first, *others][:_MAX_CALLS]
        return [call for call in calls if call in kept]

    def _call(self, tool: Tool, nth: int) -> CallStep:
        if tool.kind == "custom":
            return CallStep(tool.name, text=make_free_text(tool, self.exchange.text))
        return CallStep(tool.name, make_arguments(tool.parameters, self.exchange.text, nth=nth))

    def _retry_failed(self, tools: list[Tool]) -> list[CallStep]:
        """Return the failed calls for a retry, unless one was retried already. Failures of file tools are permanent."""
        tools_by_name = {tool.name: tool for tool in tools}
        made = [(call.name, encode_json_text(call.arguments)) for call in self.exchange.calls]
        if len(set(made)) < len(made):
            return []
        calls: list[CallStep] = []
        for call in self.exchange.calls:
            result, tool = self.exchange.result(call), tools_by_name.get(call.name)
            if result is None or tool is None or not is_failure(result):
                continue
            is_file_tool = self.file_tools is not None and self.file_tools.role_of(call.name) is not None
            if is_file_tool or _PERMANENT_FAILURE.search(format_result(result)):
                continue
            if tool.kind == "custom" and isinstance(call.arguments, str):
                calls.append(CallStep(call.name, text=call.arguments))
            elif tool.kind == "function" and call.arguments_text is None and is_valid(tool.parameters, call.arguments):
                calls.append(CallStep(call.name, call.arguments))
        return calls

    def _follow_up(self, tools: list[Tool]) -> list[CallStep]:
        names = {tool.name for tool in tools}
        calls = [] if self.file_tools is None else self.file_tools.follow_up(self.exchange)
        return [call for call in calls if call.name in names]

    # ------------------------------------------------------------------------------------------------------------ text

    def _reply_text(self) -> str:
        exchange = self.exchange
        form = self.request.options.response_format
        asked, mark, _ = exchange.text.partition(_SCHEMA_MARK)
        has_schema = bool(mark) if form is None else form.kind != "text"
        schema = ((form and form.schema) or self._find_written_schema()) if has_schema else None
        if schema is not None:
            words = "\n".join([asked, *map(format_result, exchange.results)])
            return encode_json_text(make_arguments(schema, words))
        if exchange.results:
            text = self._pick(texts.result_reports(exchange, self.file_tools))
        elif exchange.calls:
            text = texts.waiting_text(exchange.calls)
        elif asks_for_history(exchange.text):
            text = recall(self.request)
        else:
            has_tools, has_file_tools = bool(self.request.tools), self.file_tools is not None
            replies = texts.replies_without_tool(exchange.text, has_tools=has_tools, file_tools=has_file_tools)
            text = self._pick(replies)
        return text if form is None or form.kind == "text" else encode_json_text({"answer": text})

    def _find_written_schema(self) -> Mapping[str, Any] | None:
        """Return the schema of an object in the system text or the prompt: some APIs have no other place for it."""
        written = (message.blocks for message in self.request.messages if message.speaker in ("system", "human"))
        for text in map(text_of, (self.request.system, *written)):
            for found in re.finditer(r"\{", text):
                try:
                    value: Any = _decode_json(text, found.start())[0]
                except ValueError:
                    continue
                if "properties" in value:
                    return value
        return None

    def _pick(self, options: Sequence[str]) -> str:
        return options[crc32(f"{self.seed}\n{self.exchange.text}".encode("utf-8", "replace")) % len(options)]


def _needs_no_tool(text: str) -> bool:
    return texts.is_small_talk(text) or asks_for_history(text)


# -------------------------------------------------------------------------------------------------------------- limits


def _apply_limits(steps: list[Step], options: Options) -> ReplySteps:
    """Cut the steps at the first stop sequence, and at the token limit.

    A limit that is too short for all steps is spent on the calls, without calls on the text.
    """
    kept: list[Step] = []
    for step in steps:
        found = [stop for stop in options.stop or () if stop and isinstance(step, TextStep) and stop in step.text]
        if found and isinstance(step, TextStep):
            first = min(found, key=step.text.index)
            text = step.text[: step.text.index(first)]
            kept += [*([TextStep(text)] if text else []), EndStep("stop", first)]
            break
        kept.append(step)
    if options.max_tokens is None:
        return tuple(kept)
    room = options.max_tokens * _CHARACTERS_PER_TOKEN
    if sum(map(_length, kept)) <= room:
        return tuple(kept)
    dropped = ThinkStep | TextStep if any(isinstance(step, CallStep) for step in kept) else ThinkStep
    return tuple(_truncate([step for step in kept if not isinstance(step, dropped)], room))


def _truncate(steps: Iterable[Step], room: int) -> list[Step]:
    kept: list[Step] = []
    for step in steps:
        if _length(step) <= room:
            kept.append(step)
            room -= _length(step)
            continue
        if isinstance(step, TextStep) and room > 0:
            kept.append(TextStep(step.text[:room]))
        elif isinstance(step, CallStep) and room > len(step.name):
            kept.append(CallStep(step.name, text=_arguments_text(step)[: room - len(step.name)]))
        return [*kept, EndStep("length")]
    return kept


def _length(step: Step) -> int:
    if isinstance(step, CallStep):
        return len(step.name) + len(_arguments_text(step))
    return len(step.text) if isinstance(step, TextStep | ThinkStep) else 0


def _arguments_text(call: CallStep) -> str:
    return encode_json_text(call.arguments) if call.text is None else call.text

"""The built-in model: it calls the declared tools and reports their results.

Replies are a function of the request and the seed. Every tool loop ends: after results comes text, except for one retry
of failed calls and one look into a folder's README, unless there is a new question or `tool_choice` forces a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from msgspec import Struct

from segue.canonical.json import encode_json_text
from segue.canonical.request import Options, Request, Tool
from segue.emulator.model import reply_texts, workbench_texts
from segue.emulator.model.arguments import is_valid, make_arguments
from segue.emulator.model.last_exchange import Exchange, find_exchange, format_result, is_failure
from segue.emulator.model.tool_match import make_free_text, rank_tools
from segue.emulator.model.workbench import Workbench, find_workbench
from segue.emulator.steps import CallStep, EndStep, ReplySteps, Step, TextStep, ThinkStep

__all__ = ["make_reply_steps"]

_MAX_CALLS = 4
_CHARACTERS_PER_TOKEN = 4
"""In a token, roughly."""


def make_reply_steps(request: Request, *, seed: int = 0) -> ReplySteps:
    """What the model does on this request."""
    brain = _Responder(request, find_exchange(request.messages), seed, find_workbench(request.tools))
    return _apply_limits(brain.steps(), request.options)


class _Responder(Struct):
    request: Request
    exchange: Exchange
    seed: int
    bench: Workbench | None

    def steps(self) -> list[Step]:
        tools = self._tools()
        calls = self._calls(tools) if tools else []
        asked = self.request.options.reasoning
        thinks = asked is None or (asked.enabled is not False and asked.effort != "none")
        if not calls:
            thought = [ThinkStep(self._pick(reply_texts.NO_TOOL_THOUGHTS))] if thinks and asked is not None else []
            return [*thought, TextStep(self._reply_text())]
        steps: list[Step] = []
        if thinks:
            steps.append(ThinkStep(self._pick(reply_texts.call_thoughts(calls, retried=self._is_retry(calls)))))
        said = "" if self._is_announced(calls) else self._pick(reply_texts.BEFORE_CALLS)
        if said and not self._needs_json() and not _has_stop_sequence(said, self.request.options):
            steps.append(TextStep(said))
        return [*steps, *calls]

    # ---------------------------------------------------------------------------------------------------------- calls

    def _tools(self) -> list[Tool]:
        """The tools that may be called now."""
        choice = self.request.options.tool_choice
        if choice is not None and choice.mode == "none":
            return []
        allowed = None if choice is None else (choice.name,) if choice.mode == "tool" else choice.allowed
        tools: dict[str, Tool] = {}
        for tool in self.request.tools:
            if tool.kind != "hosted" and (allowed is None or tool.name in allowed):
                tools.setdefault(tool.name, tool)
        return [*tools.values()]

    def _calls(self, tools: list[Tool]) -> list[CallStep]:
        options, exchange = self.request.options, self.exchange
        forced = self._is_forced()
        if exchange.results or exchange.calls:
            calls = self._retry_failed(tools) or self._follow_up(tools)
            if not calls and forced:
                calls = self._new_calls(tools)[:1]
        elif forced or (exchange.text and not reply_texts.is_small_talk(exchange.text)):
            calls = self._new_calls(tools)
        else:
            calls = []
        return calls[: 1 if options.parallel is False else _MAX_CALLS]

    def _is_forced(self) -> bool:
        choice = self.request.options.tool_choice
        return choice is not None and choice.mode in ("tool", "required")

    def _new_calls(self, tools: list[Tool]) -> list[CallStep]:
        """Calls of the tools that the words ask for, as many of each as they name values."""
        chosen = rank_tools(tools, self.exchange.text)
        if self.bench is not None:
            allowed = {tool.name for tool in tools}
            errands, others = self.bench.make_calls(self.exchange.text)
            errands = [call for call in errands if call.name in allowed]
            chosen = [tool for tool in others if tool.name in allowed]
            if errands or not (chosen or self._is_forced()):
                return errands
            chosen = chosen or rank_tools(tools, self.exchange.text)
        made: list[CallStep] = []
        for tool in chosen:
            for nth in range(_MAX_CALLS):
                call = self._call(tool, nth)
                if call in made:
                    break
                made.append(call)
        # Each tool once before any twice, where there is no room for all.
        first = [call for index, call in enumerate(made) if call.name not in {one.name for one in made[:index]}]
        kept = [*first, *(call for call in made if call not in first)][:_MAX_CALLS]
        return [call for call in made if call in kept]

    def _call(self, tool: Tool, nth: int) -> CallStep:
        if tool.kind == "custom":
            return CallStep(tool.name, text=make_free_text(tool, self.exchange.text))
        return CallStep(tool.name, make_arguments(tool.parameters, self.exchange.text, nth=nth))

    def _retry_failed(self, tools: list[Tool]) -> list[CallStep]:
        """The calls that failed, once more. There is one such round: not where any call was made twice already."""
        known = {tool.name: tool for tool in tools}
        tried = [(call.name, encode_json_text(call.arguments)) for call in self.exchange.calls]
        if len(set(tried)) < len(tried):
            return []
        again: list[CallStep] = []
        for call in self.exchange.calls:
            result = self.exchange.result(call)
            tool = known.get(call.name)
            if (
                result is None
                or tool is None
                or not is_failure(result)
                or reply_texts.is_permanent_failure(format_result(result))
            ):
                continue
            if self.bench is not None and self.bench.has_tool(call.name):
                # A file or a command tells at once what is wrong, and does so again.
                continue
            if tool.kind == "custom" and isinstance(call.arguments, str):
                again.append(CallStep(call.name, text=call.arguments))
            elif tool.kind == "function" and call.arguments_text is None and is_valid(tool.parameters, call.arguments):
                again.append(CallStep(call.name, call.arguments))
        return again

    def _follow_up(self, tools: list[Tool]) -> list[CallStep]:
        """What follows from the results."""
        names = {tool.name for tool in tools}
        return [] if self.bench is None else [it for it in self.bench.follow_up(self.exchange) if it.name in names]

    def _is_announced(self, calls: Iterable[CallStep]) -> bool:
        """Whether it was said already that it looks, or it does something else."""
        if self.bench is None:
            return False
        return bool(self.exchange.calls) or any(self.bench.is_changing(call.name) for call in calls)

    def _is_retry(self, calls: Iterable[CallStep]) -> bool:
        names = {call.name for call in calls}
        return any(call.name in names for call in self.exchange.calls)

    # ---------------------------------------------------------------------------------------------------------- words

    def _reply_text(self) -> str:
        exchange = self.exchange
        form = self.request.options.response_format
        if exchange.results and self.bench is not None:
            told = self._pick(workbench_texts.result_reports(exchange, self.bench))
        elif exchange.results:
            told = self._pick(reply_texts.result_reports(exchange))
        elif exchange.calls:
            told = reply_texts.waiting_text(exchange.calls)
        elif self.bench is not None:
            told = self._pick(workbench_texts.reply_options(exchange.text))
        else:
            told = self._pick(reply_texts.reply_options(exchange.text, tools=bool(self.request.tools)))
        if form is None or form.kind == "text":
            return told
        if form.schema is None:
            return encode_json_text({"answer": told})
        words = "\n".join([exchange.text, *map(format_result, exchange.results)])
        return encode_json_text(make_arguments(form.schema, words))

    def _needs_json(self) -> bool:
        form = self.request.options.response_format
        return form is not None and form.kind != "text"

    def _pick(self, texts: Sequence[str]) -> str:
        return texts[crc32(f"{self.seed}\n{self.exchange.text}".encode("utf-8", "replace")) % len(texts)]


# -------------------------------------------------------------------------------------------------------------- bounds


def _has_stop_sequence(text: str, options: Options) -> bool:
    return any(stop and stop in text for stop in options.stop or ())


def _apply_limits(steps: list[Step], options: Options) -> ReplySteps:
    """The steps as far as stop sequences and the limit of tokens let them go."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, TextStep):
            found = [stop for stop in options.stop or () if stop and stop in step.text]
            if found:
                first = min(found, key=step.text.index)
                said = step.text[: step.text.index(first)]
                kept += [*([TextStep(said)] if said else []), EndStep("stop", first)]
                break
        kept.append(step)
    if options.max_tokens is None or _steps_length(kept) <= options.max_tokens * _CHARACTERS_PER_TOKEN:
        return tuple(kept)
    # A short limit is spent on what matters: calls, else words.
    spared = ThinkStep | TextStep if any(isinstance(step, CallStep) for step in kept) else ThinkStep
    return tuple(
        _truncate([step for step in kept if not isinstance(step, spared)], options.max_tokens * _CHARACTERS_PER_TOKEN)
    )


def _truncate(steps: Iterable[Step], room: int) -> list[Step]:
    kept: list[Step] = []
    for step in steps:
        size = _steps_length([step])
        if size <= room:
            kept.append(step)
            room -= size
            continue
        if isinstance(step, TextStep) and room > 0:
            kept.append(TextStep(step.text[:room]))
        elif isinstance(step, CallStep) and room > len(step.name):
            kept.append(CallStep(step.name, text=_arguments_text(step)[: room - len(step.name)]))
        return [*kept, EndStep("length")]
    return kept


def _steps_length(steps: Iterable[Step]) -> int:
    return sum(
        len(step.name) + len(_arguments_text(step)) if isinstance(step, CallStep) else len(step.text)
        for step in steps
        if isinstance(step, TextStep | ThinkStep | CallStep)
    )


def _arguments_text(call: CallStep) -> str:
    return encode_json_text(call.arguments) if call.text is None else call.text

"""The built-in model: it calls the declared tools and reports their results.

Replies are a function of the request and the seed. Every tool loop ends: after results comes text, except for one retry
of failed calls and one look into a folder's README, unless there is a new question or `tool_choice` forces a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from msgspec import Struct

from segue.canonical.jsontext import write_text
from segue.canonical.request import Options, Request, Tool
from segue.emulator.model import speech, telling
from segue.emulator.model.arguments import arguments_for, fits
from segue.emulator.model.bench import Bench, bench_of
from segue.emulator.model.choosing import best_tools, free_text
from segue.emulator.model.recent import Exchange, exchange_of, failed, result_text
from segue.emulator.turns import Call, End, Say, Step, Think, Turn

__all__ = ["answer"]

_MOST_CALLS = 4
_CHARACTERS = 4
"""In a token, roughly."""


def answer(request: Request, *, seed: int = 0) -> Turn:
    """What the model does on this request."""
    brain = _Brain(request, exchange_of(request.messages), seed, bench_of(request.tools))
    return _bounded(brain.steps(), request.options)


class _Brain(Struct):
    request: Request
    exchange: Exchange
    seed: int
    bench: Bench | None

    def steps(self) -> list[Step]:
        tools = self._tools()
        calls = self._calls(tools) if tools else []
        asked = self.request.options.reasoning
        thinks = asked is None or (asked.enabled is not False and asked.effort != "none")
        if not calls:
            thought = [Think(self._pick(speech.SIMPLE))] if thinks and asked is not None else []
            return [*thought, Say(self._words())]
        steps: list[Step] = []
        if thinks:
            steps.append(Think(self._pick(speech.thoughts(calls, retried=self._retries(calls)))))
        said = "" if self._is_at_work(calls) else self._pick(speech.BEFORE_CALLS)
        if said and not self._asks_for_json() and not _stops_in(said, self.request.options):
            steps.append(Say(said))
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

    def _calls(self, tools: list[Tool]) -> list[Call]:
        options, exchange = self.request.options, self.exchange
        forced = self._is_forced()
        if exchange.results or exchange.calls:
            calls = self._again(tools) or self._next(tools)
            if not calls and forced:
                calls = self._fresh(tools)[:1]
        elif forced or (exchange.words and not speech.is_small_talk(exchange.words)):
            calls = self._fresh(tools)
        else:
            calls = []
        return calls[: 1 if options.parallel is False else _MOST_CALLS]

    def _is_forced(self) -> bool:
        choice = self.request.options.tool_choice
        return choice is not None and choice.mode in ("tool", "required")

    def _fresh(self, tools: list[Tool]) -> list[Call]:
        """Calls of the tools that the words ask for, as many of each as they name values."""
        chosen = best_tools(tools, self.exchange.words)
        if self.bench is not None:
            allowed = {tool.name for tool in tools}
            errands, others = self.bench.calls(self.exchange.words)
            errands = [call for call in errands if call.name in allowed]
            chosen = [tool for tool in others if tool.name in allowed]
            if errands or not (chosen or self._is_forced()):
                return errands
            chosen = chosen or best_tools(tools, self.exchange.words)
        made: list[Call] = []
        for tool in chosen:
            for nth in range(_MOST_CALLS):
                call = self._call(tool, nth)
                if call in made:
                    break
                made.append(call)
        # Each tool once before any twice, where there is no room for all.
        first = [call for index, call in enumerate(made) if call.name not in {one.name for one in made[:index]}]
        kept = [*first, *(call for call in made if call not in first)][:_MOST_CALLS]
        return [call for call in made if call in kept]

    def _call(self, tool: Tool, nth: int) -> Call:
        if tool.kind == "custom":
            return Call(tool.name, text=free_text(tool, self.exchange.words))
        return Call(tool.name, arguments_for(tool.parameters, self.exchange.words, nth=nth))

    def _again(self, tools: list[Tool]) -> list[Call]:
        """The calls that failed, once more. There is one such round: not where any call was made twice already."""
        known = {tool.name: tool for tool in tools}
        tried = [(call.name, write_text(call.arguments)) for call in self.exchange.calls]
        if len(set(tried)) < len(tried):
            return []
        again: list[Call] = []
        for call in self.exchange.calls:
            result = self.exchange.result(call)
            tool = known.get(call.name)
            if result is None or tool is None or not failed(result) or speech.is_final(result_text(result)):
                continue
            if self.bench is not None and self.bench.has(call.name):
                # A file or a command tells at once what is wrong, and does so again.
                continue
            if tool.kind == "custom" and isinstance(call.arguments, str):
                again.append(Call(call.name, text=call.arguments))
            elif tool.kind == "function" and call.arguments_text is None and fits(tool.parameters, call.arguments):
                again.append(Call(call.name, call.arguments))
        return again

    def _next(self, tools: list[Tool]) -> list[Call]:
        """What follows from the results."""
        names = {tool.name for tool in tools}
        return [] if self.bench is None else [it for it in self.bench.follow_up(self.exchange) if it.name in names]

    def _is_at_work(self, calls: Iterable[Call]) -> bool:
        """Whether it was said already that it looks, or it does something else."""
        if self.bench is None:
            return False
        return bool(self.exchange.calls) or any(self.bench.changes(call.name) for call in calls)

    def _retries(self, calls: Iterable[Call]) -> bool:
        names = {call.name for call in calls}
        return any(call.name in names for call in self.exchange.calls)

    # ---------------------------------------------------------------------------------------------------------- words

    def _words(self) -> str:
        exchange = self.exchange
        form = self.request.options.response_format
        if exchange.results and self.bench is not None:
            told = self._pick(telling.reports(exchange, self.bench))
        elif exchange.results:
            told = self._pick(speech.reports(exchange))
        elif exchange.calls:
            told = speech.waiting(exchange.calls)
        elif self.bench is not None:
            told = self._pick(telling.replies(exchange.words))
        else:
            told = self._pick(speech.replies(exchange.words, tools=bool(self.request.tools)))
        if form is None or form.kind == "text":
            return told
        if form.schema is None:
            return write_text({"answer": told})
        words = "\n".join([exchange.words, *map(result_text, exchange.results)])
        return write_text(arguments_for(form.schema, words))

    def _asks_for_json(self) -> bool:
        form = self.request.options.response_format
        return form is not None and form.kind != "text"

    def _pick(self, texts: Sequence[str]) -> str:
        return texts[crc32(f"{self.seed}\n{self.exchange.words}".encode("utf-8", "replace")) % len(texts)]


# -------------------------------------------------------------------------------------------------------------- bounds


def _stops_in(text: str, options: Options) -> bool:
    return any(stop and stop in text for stop in options.stop or ())


def _bounded(steps: list[Step], options: Options) -> Turn:
    """The steps as far as stop sequences and the limit of tokens let them go."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, Say):
            found = [stop for stop in options.stop or () if stop and stop in step.text]
            if found:
                first = min(found, key=step.text.index)
                said = step.text[: step.text.index(first)]
                kept += [*([Say(said)] if said else []), End("stop", first)]
                break
        kept.append(step)
    if options.max_tokens is None or _length(kept) <= options.max_tokens * _CHARACTERS:
        return tuple(kept)
    # A short limit is spent on what matters: calls, else words.
    spared = Think | Say if any(isinstance(step, Call) for step in kept) else Think
    return tuple(_cut([step for step in kept if not isinstance(step, spared)], options.max_tokens * _CHARACTERS))


def _cut(steps: Iterable[Step], room: int) -> list[Step]:
    kept: list[Step] = []
    for step in steps:
        size = _length([step])
        if size <= room:
            kept.append(step)
            room -= size
            continue
        if isinstance(step, Say) and room > 0:
            kept.append(Say(step.text[:room]))
        elif isinstance(step, Call) and room > len(step.name):
            kept.append(Call(step.name, text=_written(step)[: room - len(step.name)]))
        return [*kept, End("length")]
    return kept


def _length(steps: Iterable[Step]) -> int:
    return sum(
        len(step.name) + len(_written(step)) if isinstance(step, Call) else len(step.text)
        for step in steps
        if isinstance(step, Say | Think | Call)
    )


def _written(call: Call) -> str:
    return write_text(call.arguments) if call.text is None else call.text

"""A transcript told to a model that has no tools but in words: declarations, calls and results as text.

What comes out is a request without tools, which is rendered once more for the roles that its target wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from segue.canonical.blocks import (
    Block,
    Message,
    Native,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
    edited,
    one_text,
    text_of,
)
from segue.canonical.jsontext import write_text
from segue.canonical.request import Request, ToolChoice
from segue.render.demands import Demands
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.idmap import IdMap
from segue.wire.names import NameMap
from segue.wire.text.base import Answered, TextFormat
from segue.wire.tools import as_function

__all__ = ["in_words", "told_in_text"]


# Where the APIs declare tools, and say how they are to be chosen.
_TOOL_KEYS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"}
    | {"toolConfig", "tool_config", "max_tool_calls", "web_search_options"}
)


def in_words(demands: Demands) -> Demands:
    """What is demanded of a history before it is told in words: pairs that are whole, and results that are text."""
    return msgspec.structs.replace(
        demands,
        results="each",
        adjacent=True,
        loose_without_id=False,
        bridge=False,
        calls_one_by_one=False,
        error_flag=False,
        own_errors=False,
        text_results=True,
        media_at_home=False,
        tools_wanted="never",
        reasoning_on_calls="never",
        reasoning_opens_loop=False,
    )


def told_in_text(transcript: Transcript, form: TextFormat, ids: IdMap, names: NameMap, report: Report) -> Request:
    """The same conversation in words alone."""
    telling = _Telling(form, ids, names)
    messages = tuple(telling.messages(transcript.messages))
    choice = transcript.options.tool_choice
    declared = "" if choice is not None and choice.mode == "none" else _declarations(transcript, form, names, report)
    system, messages = _with_system_text(transcript.system, messages, declared)
    options = msgspec.structs.replace(transcript.options, tool_choice=None, parallel=None)
    told = msgspec.structs.replace(transcript.request, messages=messages, system=system, tools=(), options=options)
    native = told.native
    if native is None:
        return told
    around = {key: value for key, value in native.fragment.items() if key not in _TOOL_KEYS}
    return msgspec.structs.replace(told, native=Native(native.api, around, intact=False))


def _declarations(transcript: Transcript, form: TextFormat, names: NameMap, report: Report) -> str:
    tools = [as_function(tool, report) for tool in transcript.tools if tool.kind != "hosted"]
    for tool in transcript.tools:
        if tool.kind == "hosted":
            report.add(
                "dropped", f"{tool.name}: a tool that the provider runs can't be told in words", subject=tool.name
            )
    if not tools:
        return ""
    report.add("tools", f"{len(tools)} tools are declared in words, as {form.name} has it", subject=form.name)
    said = form.render_tools([msgspec.structs.replace(tool, name=names.render(tool.name)) for tool in tools])
    return "\n\n".join([said, *_wishes(transcript, names, report)])


def _wishes(transcript: Transcript, names: NameMap, report: Report) -> Iterator[str]:
    """What is asked of the choice of tools, in words."""
    choice: ToolChoice | None = transcript.options.tool_choice
    if choice is not None and choice.mode == "tool" and choice.name is not None:
        report.add("adjusted", "the tool that must be called is named in words", subject="tool_choice")
        yield f"You must call the function {names.render(choice.name)} now."
    elif choice is not None and choice.mode == "required":
        report.add("adjusted", "that some tool must be called is said in words", subject="tool_choice")
        yield "You must call a function now."
    if transcript.options.parallel is False:
        report.add("adjusted", "that one call is wanted at a time is said in words", subject="parallel_tool_calls")
        yield "Call one function at a time."


def _with_system_text(
    system: tuple[Text, ...], messages: tuple[Message, ...], declared: str
) -> tuple[tuple[Text, ...], tuple[Message, ...]]:
    """The declarations behind the system text that is there, wherever it stands."""
    if not declared:
        return system, messages
    if messages and messages[0].speaker == "system" and not system:
        first = messages[0]
        said = Text("\n\n".join([text for text in (text_of(first.blocks), declared) if text]))
        return system, (msgspec.structs.replace(first, blocks=(said,), native=None), *messages[1:])
    if not system:
        return (Text(declared),), messages
    *before, last = system
    return (*before, edited(last, text="\n\n".join([last.text, declared]) if last.text else declared)), messages


class _Telling:
    def __init__(self, form: TextFormat, ids: IdMap, names: NameMap) -> None:
        self._form = form
        self._ids = ids
        self._names = names
        self._calls: dict[str, ToolCall] = {}

    def messages(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Results that follow one another are one message; where a reply holds one call, so does each reply."""
        waiting: list[ToolCall] = []
        results: list[Block] = []
        for message in messages:
            if message.speaker == "tool" or (message.speaker == "human" and results):
                results += message.blocks
                continue
            yield from self._answers(waiting, results)
            waiting, results = [], []
            calls = [call for call in calls_of(message) if call.kind != "hosted"]
            self._calls = {call.id: call for call in calls}
            if not calls:
                yield message
            elif self._form.one_call:
                waiting = calls[1:]
                yield self._asked(message, calls[:1])
            else:
                yield self._asked(message, calls)
        yield from self._answers(waiting, results)

    def _asked(self, message: Message, calls: Sequence[ToolCall]) -> Message:
        kept = [block for block in message.blocks if isinstance(block, Thinking)]
        words = one_text(block.text for block in message.blocks if isinstance(block, Text))
        said = self._form.render_calls([self._spelled(call) for call in calls])
        text = Text(f"{words}\n{said}" if words else said)
        return Message("ai", (*kept, text), turn_key=message.turn_key)

    def _answers(self, waiting: Sequence[ToolCall], results: Sequence[Block]) -> Iterator[Message]:
        """The results of a reply, and the words behind them; calls that wait are made one by one."""
        # TPL-16: their order is all that they are told apart by.
        order = {call_id: place for place, call_id in enumerate(self._calls)}
        answered = [block for block in results if isinstance(block, ToolResponse)]
        answered.sort(key=lambda response: order.get(response.call_id, len(order)))
        rest = tuple(block for block in results if not isinstance(block, ToolResponse))
        if self._form.one_call:
            asked = {call.id: call for call in waiting}
            for place, response in enumerate(answered):
                if (call := asked.get(response.call_id)) is not None:
                    yield self._asked(Message("ai", ()), [call])
                yield Message("human", self._beside([response], rest if place == len(answered) - 1 else ()))
        elif answered:
            yield Message("human", self._beside(answered, rest))
        if rest and not answered:
            yield Message("human", rest)

    def _beside(self, responses: Sequence[ToolResponse], rest: Sequence[Block]) -> tuple[Block, ...]:
        """Results, and what the human said behind them; words with words, for templates that know but one text."""
        told = self._told(responses)
        words = [block.text for block in rest if isinstance(block, Text)]
        if len(words) < len(rest):
            return (Text(told), *rest)
        return (Text("\n\n".join([told, *filter(None, words)])),)

    def _told(self, responses: Sequence[ToolResponse]) -> str:
        return self._form.render_results([self._answered(response) for response in responses])

    def _answered(self, response: ToolResponse) -> Answered:
        call = self._calls.get(response.call_id)
        name = self._names.render(call.name if call is not None else response.name or "")
        text = text_of(response.content) if response.content else ""
        if not text and not isinstance(response.structured, msgspec.UnsetType):
            text = write_text(response.structured)
        return Answered(name, self._ids.render(response.call_id), text, response.error)

    def _spelled(self, call: ToolCall) -> ToolCall:
        return msgspec.structs.replace(call, name=self._names.render(call.name), id=self._ids.render(call.id))

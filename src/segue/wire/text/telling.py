"""Renders the tool declarations, calls and results of a transcript as prompt text, for models without API tools.

The result is a request without tools, which is rendered once more for the roles that the target accepts.
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


# Body keys for tool declarations and tool choice, in all APIs.
_TOOL_KEYS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"}
    | {"toolConfig", "tool_config", "max_tool_calls", "web_search_options"}
)


def in_words(constraints: Demands) -> Demands:
    """The target's constraints before rendering as text: every call has its result next to it, and results are text."""
    return msgspec.structs.replace(
        constraints,
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


def told_in_text(
    transcript: Transcript, text_format: TextFormat, ids: IdMap, names: NameMap, report: Report
) -> Request:
    """The transcript as a request in which tools, calls and results are text."""
    renderer = _Telling(text_format, ids, names)
    messages = tuple(renderer.messages(transcript.messages))
    choice = transcript.options.tool_choice
    declared = (
        "" if choice is not None and choice.mode == "none" else _declarations(transcript, text_format, names, report)
    )
    system, messages = _with_system_text(transcript.system, messages, declared)
    options = msgspec.structs.replace(transcript.options, tool_choice=None, parallel=None)
    request = msgspec.structs.replace(transcript.request, messages=messages, system=system, tools=(), options=options)
    native = request.native
    if native is None:
        return request
    other_keys = {key: value for key, value in native.fragment.items() if key not in _TOOL_KEYS}
    return msgspec.structs.replace(request, native=Native(native.api, other_keys, intact=False))


def _declarations(transcript: Transcript, text_format: TextFormat, names: NameMap, report: Report) -> str:
    tools = [as_function(tool, report) for tool in transcript.tools if tool.kind != "hosted"]
    for tool in transcript.tools:
        if tool.kind == "hosted":
            report.add("dropped", f"{tool.name}: hosted tools can't be declared in prompt text", subject=tool.name)
    if not tools:
        return ""
    report.add(
        "tools",
        f"{len(tools)} tools declared in the system text, in the {text_format.name} format",
        subject=text_format.name,
    )
    text = text_format.render_tools([msgspec.structs.replace(tool, name=names.render(tool.name)) for tool in tools])
    return "\n\n".join([text, *_wishes(transcript, names, report)])


def _wishes(transcript: Transcript, names: NameMap, report: Report) -> Iterator[str]:
    """Tool choice and parallel calls as instructions."""
    choice: ToolChoice | None = transcript.options.tool_choice
    if choice is not None and choice.mode == "tool" and choice.name is not None:
        report.add("adjusted", "the required tool is named in the system text", subject="tool_choice")
        yield f"You must call the function {names.render(choice.name)} now."
    elif choice is not None and choice.mode == "required":
        report.add("adjusted", "that a tool call is required is stated in the system text", subject="tool_choice")
        yield "You must call a function now."
    if transcript.options.parallel is False:
        report.add("adjusted", "one tool call at a time is requested in the system text", subject="parallel_tool_calls")
        yield "Call one function at a time."


def _with_system_text(
    system: tuple[Text, ...], messages: tuple[Message, ...], declared: str
) -> tuple[tuple[Text, ...], tuple[Message, ...]]:
    """Append the declarations to the existing system text, in the request or in its first message."""
    if not declared:
        return system, messages
    if messages and messages[0].speaker == "system" and not system:
        first = messages[0]
        joined = Text("\n\n".join([text for text in (text_of(first.blocks), declared) if text]))
        return system, (msgspec.structs.replace(first, blocks=(joined,), native=None), *messages[1:])
    if not system:
        return (Text(declared),), messages
    *before, last = system
    return (*before, edited(last, text="\n\n".join([last.text, declared]) if last.text else declared)), messages


class _Telling:
    def __init__(self, text_format: TextFormat, ids: IdMap, names: NameMap) -> None:
        self._form = text_format
        self._ids = ids
        self._names = names
        self._calls: dict[str, ToolCall] = {}

    def messages(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Merge consecutive results into one message; split calls where a reply can hold only one."""
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
        before = one_text(block.text for block in message.blocks if isinstance(block, Text))
        rendered = self._form.render_calls([self._spelled(call) for call in calls])
        text = Text(f"{before}\n{rendered}" if before else rendered)
        return Message("ai", (*kept, text), turn_key=message.turn_key)

    def _answers(self, waiting: Sequence[ToolCall], results: Sequence[Block]) -> Iterator[Message]:
        """The results of a reply and the text after them; calls in `waiting` are rendered one at a time."""
        # TPL-16: results are matched to calls by order alone.
        order = {call_id: place for place, call_id in enumerate(self._calls)}
        answered = [block for block in results if isinstance(block, ToolResponse)]
        answered.sort(key=lambda response: order.get(response.call_id, len(order)))
        rest = tuple(block for block in results if not isinstance(block, ToolResponse))
        if self._form.one_call:
            waiting_calls = {call.id: call for call in waiting}
            for place, response in enumerate(answered):
                if (call := waiting_calls.get(response.call_id)) is not None:
                    yield self._asked(Message("ai", ()), [call])
                yield Message("human", self._beside([response], rest if place == len(answered) - 1 else ()))
        elif answered:
            yield Message("human", self._beside(answered, rest))
        if rest and not answered:
            yield Message("human", rest)

    def _beside(self, responses: Sequence[ToolResponse], rest: Sequence[Block]) -> tuple[Block, ...]:
        """Results and the user's blocks after them; joined if all are text, since templates accept a single text."""
        results = self._told(responses)
        texts = [block.text for block in rest if isinstance(block, Text)]
        if len(texts) < len(rest):
            return (Text(results), *rest)
        return (Text("\n\n".join([results, *filter(None, texts)])),)

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

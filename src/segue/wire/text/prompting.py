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
    edit_block,
    join_texts,
    text_of,
)
from segue.canonical.json import encode_json_text
from segue.canonical.request import Request, ToolChoice
from segue.errors import format_count
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.ids import IdMap
from segue.wire.names import NameMap
from segue.wire.text.text_format import ResultText, TextFormat
from segue.wire.tools import to_function_tool

# Body keys for tool declarations and tool choice, in all APIs.
_TOOL_KEYS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"}
    | {"toolConfig", "tool_config", "max_tool_calls", "web_search_options"}
)


def text_constraints(constraints: Constraints) -> Constraints:
    """Return the constraints before rendering as text: every call has its result next to it, and results are text."""
    return msgspec.structs.replace(
        constraints,
        result_grouping="each",
        results_adjacent=True,
        unpaired_without_id=False,
        filler_after_results=False,
        one_call_per_message=False,
        has_error_flag=False,
        keeps_own_errors=False,
        text_only_results=True,
        keeps_own_result_media=False,
        tools_required="never",
        reasoning_required_on_calls="never",
        open_exchange_needs_reasoning=False,
    )


def render_as_text(
    transcript: Transcript, text_format: TextFormat, ids: IdMap, names: NameMap, report: Report
) -> Request:
    """Render the transcript as a request in which tools, calls and results are text."""
    renderer = _TextRenderer(text_format, ids, names)
    messages = tuple(renderer.render_messages(transcript.messages))
    choice = transcript.options.tool_choice
    declared = (
        ""
        if choice is not None and choice.mode == "none"
        else _render_declarations(transcript, text_format, names, report)
    )
    system, messages = _append_to_system(transcript.system, messages, declared)
    options = msgspec.structs.replace(transcript.options, tool_choice=None, parallel=None)
    request = msgspec.structs.replace(transcript.request, messages=messages, system=system, tools=(), options=options)
    native = request.native
    if native is None:
        return request
    other_keys = {key: value for key, value in native.fragment.items() if key not in _TOOL_KEYS}
    return msgspec.structs.replace(request, native=Native(native.api, other_keys, intact=False))


def _render_declarations(transcript: Transcript, text_format: TextFormat, names: NameMap, report: Report) -> str:
    tools = [to_function_tool(tool, report) for tool in transcript.tools if tool.kind != "hosted"]
    for tool in transcript.tools:
        if tool.kind == "hosted":
            message = f"hosted tool {tool.name} not declared: hosted tools can't be declared in the system text"
            report.add("dropped", message, subject=tool.name)
    if not tools:
        return ""
    count = format_count(len(tools), "tool")
    message = f"{count} declared in the system text, in the {text_format.name} format"
    report.add("tools", message, subject=text_format.name)
    text = text_format.render_tools([msgspec.structs.replace(tool, name=names.render(tool.name)) for tool in tools])
    return "\n\n".join([text, *_render_tool_choice(transcript, names, report)])


def _render_tool_choice(transcript: Transcript, names: NameMap, report: Report) -> Iterator[str]:
    """Render tool choice and parallel calls as instructions."""
    choice: ToolChoice | None = transcript.options.tool_choice
    if choice is not None and choice.mode == "tool" and choice.name is not None:
        message = "`tool_choice` moved into the system text: the model is instructed to call the tool"
        report.add("adjusted", message, subject="tool_choice")
        yield f"You must call the function {names.render(choice.name)} now."
    elif choice is not None and choice.mode == "required":
        message = "`tool_choice` moved into the system text: the model is instructed to call a tool"
        report.add("adjusted", message, subject="tool_choice")
        yield "You must call a function now."
    if transcript.options.parallel is False:
        message = "`parallel_tool_calls` moved into the system text: the model is instructed to make one call at a time"
        report.add("adjusted", message, subject="parallel_tool_calls")
        yield "Call one function at a time."


def _append_to_system(
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
    *earlier, last = system
    return (*earlier, edit_block(last, text="\n\n".join([last.text, declared]) if last.text else declared)), messages


class _TextRenderer:
    def __init__(self, text_format: TextFormat, ids: IdMap, names: NameMap) -> None:
        self._format = text_format
        self._ids = ids
        self._names = names
        self._calls: dict[str, ToolCall] = {}

    def render_messages(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Merge consecutive results into one message; split calls where a reply can hold only one."""
        waiting: list[ToolCall] = []
        results: list[Block] = []
        for message in messages:
            if message.speaker == "tool" or (message.speaker == "human" and results):
                results += message.blocks
                continue
            yield from self._render_results(waiting, results)
            waiting, results = [], []
            calls = [call for call in calls_of(message) if call.kind != "hosted"]
            self._calls = {call.id: call for call in calls}
            if not calls:
                yield message
            elif self._format.one_call_per_reply:
                waiting = calls[1:]
                yield self._render_calls(message, calls[:1])
            else:
                yield self._render_calls(message, calls)
        yield from self._render_results(waiting, results)

    def _render_calls(self, message: Message, calls: Sequence[ToolCall]) -> Message:
        thinking = [block for block in message.blocks if isinstance(block, Thinking)]
        text_before = join_texts(block.text for block in message.blocks if isinstance(block, Text))
        rendered = self._format.render_calls([self._project_call(call) for call in calls])
        text = Text(f"{text_before}\n{rendered}" if text_before else rendered)
        return Message("ai", (*thinking, text), turn_key=message.turn_key)

    def _render_results(self, waiting: Sequence[ToolCall], results: Sequence[Block]) -> Iterator[Message]:
        """Render the results of a reply and the text after them; calls in `waiting` are rendered one at a time."""
        # TPL-16: results are matched to calls by order alone.
        order = {call_id: index for index, call_id in enumerate(self._calls)}
        answered = [block for block in results if isinstance(block, ToolResponse)]
        answered.sort(key=lambda response: order.get(response.call_id, len(order)))
        other_blocks = tuple(block for block in results if not isinstance(block, ToolResponse))
        if self._format.one_call_per_reply:
            waiting_calls = {call.id: call for call in waiting}
            for index, response in enumerate(answered):
                if (call := waiting_calls.get(response.call_id)) is not None:
                    yield self._render_calls(Message("ai", ()), [call])
                yield Message(
                    "human", self._join_results([response], other_blocks if index == len(answered) - 1 else ())
                )
        elif answered:
            yield Message("human", self._join_results(answered, other_blocks))
        if other_blocks and not answered:
            yield Message("human", other_blocks)

    def _join_results(self, responses: Sequence[ToolResponse], other_blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Render results and the user's blocks after them; joined if all are text: templates accept a single text."""
        results = self._render_responses(responses)
        texts = [block.text for block in other_blocks if isinstance(block, Text)]
        if len(texts) < len(other_blocks):
            return (Text(results), *other_blocks)
        return (Text("\n\n".join([results, *filter(None, texts)])),)

    def _render_responses(self, responses: Sequence[ToolResponse]) -> str:
        return self._format.render_results([self._build_result(response) for response in responses])

    def _build_result(self, response: ToolResponse) -> ResultText:
        call = self._calls.get(response.call_id)
        name = self._names.render(call.name if call is not None else response.name or "")
        text = text_of(response.content) if response.content else ""
        if not text and not isinstance(response.structured, msgspec.UnsetType):
            text = encode_json_text(response.structured)
        return ResultText(name, self._ids.render(response.call_id), text, response.error)

    def _project_call(self, call: ToolCall) -> ToolCall:
        return msgspec.structs.replace(call, name=self._names.render(call.name), id=self._ids.render(call.id))

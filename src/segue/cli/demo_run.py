"""Runs the demo: one conversation that changes the provider at every request, on providers emulated on loopback.

Every request goes over HTTP to a strict emulator, which validates it and replies from a script; tools run here. In the
naive half the history is converted by renaming fields only: ids, order, gaps and reasoning stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Literal, cast

import msgspec

import segue
from segue._literals import Api
from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse, text_of
from segue.cli.demo_task import SCRIPTED_REPLIES, SYSTEM, TASK, TOOLS, DemoTools, ScriptedReply
from segue.emulator import Emulator, RecordedRequest, start
from segue.emulator.client import Response, post

_Verdict = Literal["accepted", "refused", "confused"]
_Outcome = Literal["result", "error", "cancelled"]
_Json = dict[str, Any]
# APIs for which reasoning is enabled in the request; the others reason by default, or never.
_THINKING = frozenset({"anthropic", "bedrock", "openai-responses"})


class Call(msgspec.Struct, frozen=True):
    """A tool call and its outcome."""

    tool: str
    canonical_id: str
    wire_id: str
    outcome: _Outcome
    result: str


class Finding(msgspec.Struct, frozen=True):
    """A finding of the report."""

    kind: str
    message: str


class ReasoningDropped(Finding, frozen=True):
    """A finding that reasoning of another provider was dropped."""


class Step(msgspec.Struct, frozen=True):
    """One request: its content, the provider's verdict, and the reply.

    `rules` are the violated ones, the one behind `error` first. `remapped` counts ids that differ from those of the
    provider that made the call. `first_id` is the id of the conversation's first call in this request. `kept` of the
    `before` messages of the previous request to this provider are unchanged in this one. `rescued`: the naive request
    failed and segue's was accepted.
    """

    number: int
    api: str
    model: str
    messages: int
    carried: int
    first_id: str
    results: int
    synthetic: int
    remapped: int
    findings: list[Finding]
    kept: int
    before: int
    verdict: _Verdict
    status: int
    error: str
    rules: list[str]
    rescued: bool
    thought: bool
    reply_text: str = msgspec.field(name="says")
    calls: list[Call]
    user: str


class Totals(msgspec.Struct, frozen=True):
    """Totals of a run, summed over its requests."""

    requests: int
    refused: int
    calls: int
    results: int
    synthetic: int
    remapped: int
    kept: int
    before: int


def list_targets() -> list[tuple[str, str]]:
    """Return every API that the demo has replies for, with its default model, forward and back."""
    rows = [(row.name, row.default_model) for row in segue.formats() if row.kind != "text"]
    rows = rows[: len(SCRIPTED_REPLIES) // 2 + 1]
    return [*rows, *reversed(rows[:-1])]


def run_steps(*, naive: bool = False) -> Iterator[Step]:
    """Run the demo, one request at a time. With `naive`, only the field names of the history are converted."""
    targets = list_targets()
    with ExitStack() as running:
        emulators = {api: running.enter_context(_start_emulator(api, targets)) for api, _ in dict(targets).items()}
        yield from _DemoRun(emulators, naive=naive).run(targets)


def _start_emulator(api: str, targets: Sequence[tuple[str, str]]) -> Emulator:
    scripts = [
        scripted.script.strip("\n")
        for (name, _), scripted in zip(targets, SCRIPTED_REPLIES, strict=True)
        if name == api
    ]
    return start(api, script="\n---\n".join(scripts))


class _DemoRun:
    """The state of one run: the conversation, its tools and its calls so far."""

    def __init__(self, emulators: dict[str, Emulator], *, naive: bool) -> None:
        self._emulators = emulators
        self._naive = naive
        self._chat = segue.Conversation(system=SYSTEM, tools=TOOLS)
        self._chat.add_user(TASK)
        self._tools = DemoTools()
        self._calls: dict[str, Call] = {}
        self._message_counts: dict[str, int] = {}

    def run(self, targets: Sequence[tuple[str, str]]) -> Iterator[Step]:
        for number, ((api, model), scripted) in enumerate(zip(targets, SCRIPTED_REPLIES, strict=True), 1):
            reasoning = {"enabled": True, "effort": "low"} if api in _THINKING else None
            self._chat.options = {"max_tokens": 4096, "reasoning": reasoning}
            yield self._run_step(number, api, model, scripted)

    def _run_step(self, number: int, api: str, model: str, scripted: ScriptedReply) -> Step:
        emulator = self._emulators[api]
        rendered = self._chat.render(cast("Api", api), model)
        shown, response = self._send(emulator, model, rendered.body)
        record = emulator.requests[-1]
        carried = {call_id: self._calls[call_id] for call_id, _ in rendered.report.emitted_calls}
        remapped = sum(carried[call_id].wire_id != wire_id for call_id, wire_id in rendered.report.emitted_calls)
        thought, calls = (
            self._add_reply(segue.assemble(response.data, cast("Api", api)), scripted)
            if response.status == 200
            else (False, [])
        )
        if scripted.next_message:
            self._chat.add_user(scripted.next_message)
        before, self._message_counts[api] = self._message_counts.get(api, 0), record.messages
        broken = [v.rule for v in shown.violations if v.severity == "reject" or v.rule == "KIM-01"]
        cancelled = sum(call.outcome == "cancelled" for call in carried.values())
        return Step(
            number=number,
            api=api,
            model=model,
            messages=record.messages,
            carried=len(carried),
            first_id=next((wire_id for _, wire_id in rendered.report.emitted_calls), ""),
            results=len(carried) - cancelled if self._naive else len(rendered.report.emitted_results),
            synthetic=0 if self._naive else cancelled,
            remapped=0 if self._naive else remapped,
            findings=[]
            if self._naive
            else [_summarize_finding(finding) for finding in rendered.report.findings if finding.level != "note"],
            kept=0 if self._naive else min(record.kept, before),
            before=0 if self._naive else before,
            verdict="accepted" if shown.accepted else "confused" if shown.confused else "refused",
            status=shown.status,
            error=shown.refused or (shown.text if shown.confused else ""),
            rules=list(dict.fromkeys([*filter(None, [shown.rule]), *broken])),
            rescued=not shown.accepted and record.accepted,
            thought=thought,
            reply_text=record.text,
            calls=calls,
            user=scripted.next_message or "",
        )

    def _send(self, emulator: Emulator, model: str, rendered: dict[str, Any]) -> tuple[RecordedRequest, Response]:
        """Send the request and return the record to show and the response to continue with.

        In naive mode the copied history is sent first; if it is rejected, the run continues with segue's request.
        """
        if self._naive:
            response = post(
                emulator, copy_history(self._chat.messages, emulator.api, rendered), model=model, stream=True
            )
            shown = emulator.requests[-1]
            if shown.accepted:
                return shown, response
        else:
            shown = None
        response = post(emulator, rendered, model=model, stream=True)
        return shown or emulator.requests[-1], response

    def _add_reply(self, reply: segue.Reply, scripted: ScriptedReply) -> tuple[bool, list[Call]]:
        """Add the reply and run its tools; return whether it has reasoning, and its calls."""
        added = self._chat.add_reply(reply)
        thought = any(isinstance(block, Thinking) for block in added.blocks)
        calls = [
            self._run_call(call, cancelled=scripted.interrupts and position == 0)
            for position, call in enumerate(added.calls)
        ]
        self._calls.update({call.canonical_id: call for call in calls})
        return thought, calls

    def _run_call(self, call: ToolCall, *, cancelled: bool) -> Call:
        outcome: _Outcome = "cancelled"
        result = "stopped by the user"
        if cancelled:
            self._chat.cancel(call)
        else:
            failed, result = self._tools.run(call.name, call.arguments)
            outcome = "error" if failed else "result"
            self._chat.add_result(call, result, error=failed)
        return Call(call.name, call.id, call.raw_id or "", outcome, result)


def _summarize_finding(finding: segue.Finding) -> Finding:
    # Of the findings on reasoning in the demo, only those on dropped reasoning have a subject: the model it came from.
    is_dropped = finding.kind == "reasoning" and finding.subject is not None
    return (ReasoningDropped if is_dropped else Finding)(finding.kind, finding.message)


def sum_steps(steps: Sequence[Step]) -> Totals:
    return Totals(
        requests=len(steps),
        refused=sum(step.verdict != "accepted" for step in steps),
        calls=sum(len(step.calls) for step in steps),
        results=sum(step.results for step in steps),
        synthetic=sum(step.synthetic for step in steps),
        remapped=sum(step.remapped for step in steps),
        kept=sum(step.kept for step in steps),
        before=sum(step.before for step in steps),
    )


# -------------------------------------------------------------------------------------------------- naive conversion


def copy_history(messages: Sequence[Message], api: str, rendered: _Json) -> _Json:
    """Return `rendered` with its messages replaced by naive copies; everything else in the body stays valid."""
    key, copy = _COPY_FUNCTIONS.get(api, ("messages", _copy_chat))
    head = [entry for entry in rendered[key][:1] if entry.get("role") == "system"]
    return {**rendered, key: [*head, *(entry for message in messages for entry in copy(message))]}


def _copied_blocks(message: Message) -> list[Block]:
    """Return the blocks without results of cancelled calls, which a program that only renames fields does not have."""
    return [block for block in message.blocks if not (isinstance(block, ToolResponse) and block.outcome)]


def _result_text(response: ToolResponse) -> str:
    return text_of(response.content)


def _copy_chat(message: Message) -> Iterator[_Json]:
    for response in (block for block in _copied_blocks(message) if isinstance(block, ToolResponse)):
        yield {"role": "tool", "tool_call_id": response.origin.raw_id, "content": _result_text(response)}
    if message.speaker == "human":
        yield {"role": "user", "content": text_of(message.blocks)}
    if message.speaker == "ai":
        reply: _Json = {"role": "assistant", "content": text_of(message.blocks) or None}
        reasoning = [block.text for block in message.blocks if isinstance(block, Thinking) and block.text]
        calls = [
            {
                "id": call.raw_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.blocks
            if isinstance(call, ToolCall)
        ]
        yield {
            **reply,
            **({"reasoning_content": reasoning[0]} if reasoning else {}),
            **({"tool_calls": calls} if calls else {}),
        }


def _copy_responses(message: Message) -> Iterator[_Json]:
    for block in _copied_blocks(message):
        match block:
            case Text() if message.speaker == "human":
                yield {"role": "user", "content": block.text}
            case Text():
                yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": block.text}]}
            case Thinking():
                yield {"type": "reasoning", "id": block.signature or "rs_1", "summary": []}
            case ToolCall():
                text = json.dumps(block.arguments)
                yield {"type": "function_call", "call_id": block.raw_id, "name": block.name, "arguments": text}
            case ToolResponse():
                yield {"type": "function_call_output", "call_id": block.origin.raw_id, "output": _result_text(block)}
            case _:
                pass


def _copy_anthropic(message: Message) -> Iterator[_Json]:
    content: list[_Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                content.append({"type": "text", "text": block.text})
            case Thinking():
                content.append({"type": "thinking", "thinking": block.text, "signature": block.signature or ""})
            case ToolCall():
                content.append({"type": "tool_use", "id": block.raw_id, "name": block.name, "input": block.arguments})
            case ToolResponse():
                result = {"tool_use_id": block.origin.raw_id, "content": _result_text(block)}
                content.append({"type": "tool_result", **result})
            case _:
                pass
    if content:
        yield {"role": "assistant" if message.speaker == "ai" else "user", "content": content}


def _copy_bedrock(message: Message) -> Iterator[_Json]:
    content: list[_Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                content.append({"text": block.text})
            case Thinking():
                reasoning = {"text": block.text, "signature": block.signature or ""}
                content.append({"reasoningContent": {"reasoningText": reasoning}})
            case ToolCall():
                content.append({"toolUse": {"toolUseId": block.raw_id, "name": block.name, "input": block.arguments}})
            case ToolResponse():
                result = {"toolUseId": block.origin.raw_id, "content": [{"text": _result_text(block)}]}
                content.append({"toolResult": result})
            case _:
                pass
    if content:
        yield {"role": "assistant" if message.speaker == "ai" else "user", "content": content}


def _copy_gemini(message: Message) -> Iterator[_Json]:
    parts: list[_Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                parts.append({"text": block.text})
            case ToolCall():
                parts.append({"functionCall": {"name": block.name, "args": block.arguments}})
            case ToolResponse():
                parts.append({"functionResponse": {"name": block.name, "response": {"output": _result_text(block)}}})
            case _:
                pass
    if parts:
        yield {"role": "model" if message.speaker == "ai" else "user", "parts": parts}


_COPY_FUNCTIONS: dict[str, tuple[str, Callable[[Message], Iterator[_Json]]]] = {
    "openai-responses": ("input", _copy_responses),
    "azure-foundry": ("input", _copy_responses),
    "anthropic": ("messages", _copy_anthropic),
    "bedrock": ("messages", _copy_bedrock),
    "gemini": ("contents", _copy_gemini),
}

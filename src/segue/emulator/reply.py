"""A reply: built from steps, with ids and signatures; encoded whole, or as a stream with waits, breaks and faults."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id
from segue.canonical.request import Reply, Usage
from segue.emulator.faults import Fault, make_id_remover, map_payloads, repeat_end
from segue.emulator.http_messages import HttpResponse
from segue.emulator.prompt_cache import PromptBill, estimate_tokens
from segue.emulator.providers.provider import Provider, RequestContext, StreamFraming
from segue.emulator.signatures import IdGenerator
from segue.emulator.steps import CallStep, CutStep, EndStep, ErrorStep, ReplySteps, Step, TextStep, ThinkStep, WaitStep
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, JsonObject, RenderContext
from segue.wire.ids import IdMap, IdScheme
from segue.wire.json_values import object_or_none
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    block_events,
)

_StreamStep: TypeAlias = Event | WaitStep | ErrorStep | CutStep

_WORD_CHUNK = re.compile(r"\s*\S+\s?|\s+")
_ARGUMENT_CHUNK = 12
_FIRST_TIMESTAMP = 1_700_000_000
_DEFAULT_THOUGHT = "This needs little thought."


class ReplyBuilder:
    """One reply: the blocks of its steps, up to an error or cut.

    `object_arguments`: arguments are sent as an object, and invalid ones as an empty object.
    """

    def __init__(
        self,
        provider: Provider,
        context: RequestContext,
        steps: ReplySteps,
        *,
        number: int,
        prompt: PromptBill,
        object_arguments: bool,
        reply_ids: IdGenerator,
    ) -> None:
        thinks = provider.has_reasoning(context)
        if thinks and provider.always_reasons and not any(isinstance(step, ThinkStep) for step in steps):
            steps = (ThinkStep(_DEFAULT_THOUGHT), *steps)
        self.thoughts = [step.text for step in steps if isinstance(step, ThinkStep)] if thinks else []
        self.context = replace(context, thought_count=len(self.thoughts))
        self.steps = steps
        self._provider = provider
        self._prompt_usage = prompt.usage
        self._written = prompt.written
        self._object_arguments = object_arguments
        self._counts = {"calls": 0, "thoughts": 0}
        self._parts: list[tuple[Step, int]] = []
        blocks: list[Block] = []
        for step in steps:
            step_blocks = list(self._make_blocks(step))
            self._parts.append((step, len(step_blocks)))
            blocks += step_blocks
            if isinstance(step, ErrorStep | CutStep):
                break
        reply_id = provider.reply_id(reply_ids)
        usage, end = self._count_usage(blocks), self._find_end(blocks)
        # There is no clock: replies are a second apart.
        reply = Reply(
            tuple(blocks),
            end.finish,
            usage,
            reply_id,
            context.model,
            stop_sequence=end.sequence,
            created=_FIRST_TIMESTAMP + number,
        )
        self.reply = provider.complete_reply(self.context, reply)
        """The whole reply."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.calls

    @property
    def break_step(self) -> ErrorStep | CutStep | None:
        """The error or cut that ends the reply, if any."""
        last = self._parts[-1][0] if self._parts else None
        return last if isinstance(last, ErrorStep | CutStep) else None

    def complete_usage(self, payload: Any) -> Any:
        """Add the provider's own fields to each usage of a reply or an event."""
        members = object_or_none(payload)
        if members is None or members.get("type") == "message_delta":
            return payload
        usage = object_or_none(members.get("usage"))
        changed = {key: self.complete_usage(members[key]) for key in ("message", "response") if key in members}
        if usage is not None:
            changed["usage"] = self._provider.complete_usage(usage, self._written)
        return {**members, **changed}

    def stream_steps(self) -> Iterator[_StreamStep]:
        """Yield the stream events and steps of the reply, up to an error or cut."""
        reply = self.reply
        yield self._provider.make_reply_start(reply)
        index = 0
        cut = len(reply.blocks) - 1 if isinstance(self.break_step, CutStep) else None
        for step, count in self._parts:
            if isinstance(step, WaitStep | ErrorStep | CutStep):
                yield step
            for place in range(index, index + count):
                yield from self._block_events(place, ends=place != cut or _is_complete(reply.blocks[place]))
            index += count
        if not self.break_step:
            yield UsageUpdate(reply.usage or Usage())
            yield Finished(reply.finish, stop_sequence=reply.stop_sequence)

    def _block_events(self, place: int, *, ends: bool) -> Iterator[Event]:
        for event in _split_deltas(block_events(place, self.reply.blocks[place])):
            if isinstance(event, BlockStart):
                yield BlockStart(place, self._provider.initial_block(event.block))
            elif ends or not isinstance(event, BlockEnd):
                yield event

    def _find_end(self, blocks: Sequence[Block]) -> EndStep:
        for step in self.steps:
            if isinstance(step, EndStep):
                return step
        return EndStep("tool_calls" if any(isinstance(block, ToolCall) for block in blocks) else "stop")

    def _count_usage(self, blocks: Sequence[Block]) -> Usage:
        thought = sum(estimate_tokens(thought, self.context.model) for thought in self.thoughts)
        return msgspec.structs.replace(
            self._prompt_usage, output=thought + _count_tokens(blocks, self.context.model), reasoning=thought
        )

    # ------------------------------------------------------------------------------------------------------- the blocks

    def _make_blocks(self, step: Step) -> Iterator[Block]:
        match step:
            case TextStep():
                yield Text(step.text)
            case ThinkStep() if self.thoughts:
                yield self._provider.make_thinking(self.context, self._next_index("thoughts"), step.text)
            case CallStep():
                yield from self._make_call(step)
            case _:
                return

    def _make_call(self, step: CallStep) -> Iterator[Thinking | ToolCall]:
        index = self._next_index("calls")
        signature_block = self._provider.make_call_signature(self.context, index)
        if signature_block is not None:
            yield signature_block
        origin = self._provider.call_origin(self.context, index, step.name, step.id)
        call_id = canonical_tool_id(
            provider=origin.provider,
            raw_id=origin.raw_id,
            tool_name=step.name,
            turn_key=self._provider.reply_id(self.context.ids),
            call_index=index,
        )
        arguments: Any = dict[str, Any]() if step.arguments is UNSET else step.arguments
        if any(tool.name == step.name and tool.kind == "custom" for tool in self.context.request.tools):
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            yield ToolCall(step.name, step.text or text, call_id, kind="custom", origin=origin)
        elif step.text is not None and not self._object_arguments:
            yield ToolCall(step.name, None, call_id, arguments_text=step.text, origin=origin)
        else:
            yield ToolCall(step.name, arguments, call_id, origin=origin)

    def _next_index(self, kind: str) -> int:
        index = self._counts[kind]
        self._counts[kind] = index + 1
        return index


def _is_complete(block: Block) -> bool:
    """Return whether the block before a cut is sent in full: a call with complete arguments. Free text has no end."""
    return isinstance(block, ToolCall) and block.kind != "custom" and block.arguments_text is None


def _count_tokens(blocks: Sequence[Block], model: str) -> int:
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    calls_text = "".join(
        f"{call.name}{call.arguments_text or call.arguments}" for call in blocks if isinstance(call, ToolCall)
    )
    return estimate_tokens(text + calls_text, model)


def _split_deltas(events: Sequence[Event]) -> Iterator[Event]:
    """Split text deltas into words and argument deltas into short chunks."""
    for event in events:
        match event:
            case TextDelta() | ThinkingDelta():
                yield from (type(event)(event.index, piece) for piece in _WORD_CHUNK.findall(event.text))
            case InputDelta():
                text = event.text
                yield from (
                    InputDelta(event.index, text[start : start + _ARGUMENT_CHUNK])
                    for start in range(0, len(text), _ARGUMENT_CHUNK)
                )
            case _:
                yield event


# ------------------------------------------------------------------------------------------------------------ responses


def _raw_id_context(provider: Provider, context: RequestContext, builder: ReplyBuilder) -> RenderContext:
    """Return a render context that keeps the ids of the script, valid or not."""
    own = provider.wire.id_scheme(parse_model(context.model))
    ids = IdMap(IdScheme(own.name, r"(?s).*", own.make), provider=provider.wire.provider, allow_duplicates=True)
    for call in builder.calls:
        ids.assign(call, call.name)
    return RenderContext(ids, NameMap(ANY_NAME), Report(target=provider.api), request=context.request)


def render_reply_body(provider: Provider, builder: ReplyBuilder) -> JsonObject:
    body = provider.wire.render_reply(builder.reply, _raw_id_context(provider, builder.context, builder))
    return builder.complete_usage(body)


def _payload_change(builder: ReplyBuilder, faults: frozenset[Fault]) -> Callable[[Any], Any] | None:
    """Return the function that removes or empties the ids that the faults concern; None if there are none."""
    call_ids = frozenset(call.raw_id for call in builder.calls if call.raw_id)
    removed = call_ids if "missing-ids" in faults else frozenset[str]()
    emptied = call_ids if "empty-ids" in faults else frozenset[str]()
    if "no-reply-id" in faults and builder.reply.id:
        removed |= {builder.reply.id}
    return make_id_remover(removed, emptied) if removed or emptied else None


def whole_response(
    body: JsonObject, builder: ReplyBuilder, faults: frozenset[Fault], *, patience: float
) -> HttpResponse:
    """Return the whole reply, or half of it: as a complete body, or with the content-length of the whole."""
    if change_payload := _payload_change(builder, faults):
        body = change_payload(body)
    data = msgspec.json.encode(body)
    response = HttpResponse(200, data, "text/plain" if "wrong-type" in faults else "application/json")
    half, rest = data[: len(data) // 2], data[len(data) // 2 :]
    if builder.break_step == CutStep("end"):
        response.content = half
    elif "reset-in-stream" in faults or builder.break_step is not None:
        response.content, response.declared_length, response.reset = half, len(data), True
    elif "stall" in faults:
        response.content, response.declared_length = _write_chunks([half, WaitStep(patience), rest]), len(data)
    return response


def stream_response(
    provider: Provider,
    builder: ReplyBuilder,
    faults: frozenset[Fault],
    framing: StreamFraming | None,
    *,
    patience: float,
    make_error: Callable[[ErrorStep], ApiError],
) -> HttpResponse:
    chunks = list(_encode_steps(provider, builder, faults, framing, make_error))
    if faults & {"stall", "reset-in-stream"}:
        before, after = _split_in_half(chunks)
        stalled = [WaitStep(patience)] if "stall" in faults else []
        chunks = [*before, *stalled, *([] if "reset-in-stream" in faults else after)]
    media_type = (
        "text/html" if "wrong-type" in faults else framing.media_type if framing else provider.stream_media_type
    )
    reset = "reset-in-stream" in faults or builder.break_step == CutStep("reset")
    return HttpResponse(200, _write_chunks(chunks), media_type, [("cache-control", "no-cache")], reset=reset)


async def _write_chunks(chunks: list[bytes | WaitStep]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        if isinstance(chunk, WaitStep):
            await asyncio.sleep(chunk.seconds)
        else:
            yield chunk


def _split_in_half(chunks: list[bytes | WaitStep]) -> tuple[list[bytes | WaitStep], list[bytes | WaitStep]]:
    """Split the chunks into two non-empty halves; a single chunk is split inside."""
    indexes = [index for index, chunk in enumerate(chunks) if isinstance(chunk, bytes)]
    if len(indexes) == 1:
        (index,) = indexes
        only = chunks[index]
        if isinstance(only, bytes):
            chunks = [*chunks[:index], only[: len(only) // 2], only[len(only) // 2 :], *chunks[index + 1 :]]
            return chunks[: index + 1], chunks[index + 1 :]
    middle = indexes[len(indexes) // 2] if indexes else 0
    return chunks[:middle], chunks[middle:]


def _encode_steps(
    provider: Provider,
    builder: ReplyBuilder,
    faults: frozenset[Fault],
    framing: StreamFraming | None,
    make_error: Callable[[ErrorStep], ApiError],
) -> Iterator[bytes | WaitStep]:
    """Yield the bytes of the stream and the waits between them."""
    context = builder.context
    render_context = _raw_id_context(provider, context, builder)
    renderer = provider.wire.stream_renderer(render_context, context.model)
    change_payload = _payload_change(builder, faults)
    steps = list(builder.stream_steps())
    for index, step in enumerate(steps):
        if isinstance(step, WaitStep):
            if not _is_leading_wait(steps, index):
                yield step
            continue
        if isinstance(step, CutStep):
            return
        data = renderer.render((Failed(make_error(step)) if isinstance(step, ErrorStep) else step,))
        if change_payload is not None and data:
            data = map_payloads(data, change_payload)
        if "double-finish" in faults and isinstance(step, Finished):
            data = repeat_end(data)
        if isinstance(step, ErrorStep) and not framing:
            data = provider.encode_stream_error(data)
        elif isinstance(step, ReplyStart) and data:
            data = provider.encode_reply_start(data, builder.reply)
        if b'"usage"' in data:
            data = map_payloads(data, builder.complete_usage)
        if data:
            yield framing.feed(data) if framing else data
    if framing:
        yield framing.close()


def _is_leading_wait(steps: list[_StreamStep], index: int) -> bool:
    """Return whether this wait is at the start of the reply, where it already delayed the response."""
    return all(isinstance(step, WaitStep) for step in steps[1:index])

"""Encodes a reply in the API's format: whole, or as a stream with its waits, breaks and faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec

from segue.emulator.faults import Fault, make_id_remover, map_payloads, repeat_end
from segue.emulator.http_messages import HttpResponse
from segue.emulator.providers.provider import Provider, RequestContext, StreamFraming
from segue.emulator.reply import ReplyBuilder, StreamStep
from segue.emulator.steps import CutStep, ErrorStep, WaitStep
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, JsonObject, RenderContext
from segue.wire.ids import IdMap, IdScheme
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.stream.events import Failed, Finished

__all__ = ["render_reply_body", "stream_response", "whole_response"]


def _raw_id_context(provider: Provider, context: RequestContext, builder: ReplyBuilder) -> RenderContext:
    """Returns a render context that keeps the ids of the script, valid or not."""
    own = provider.wire.id_scheme(parse_model(context.model))
    ids = IdMap(IdScheme(own.name, r"(?s).*", own.make), provider=provider.wire.provider, allow_duplicates=True)
    for call in builder.calls:
        ids.assign(call, call.name)
    return RenderContext(ids, NameMap(ANY_NAME), Report(target=provider.api))


def render_reply_body(provider: Provider, builder: ReplyBuilder) -> JsonObject:
    return provider.wire.render_reply(builder.reply, _raw_id_context(provider, builder.context, builder))


def _call_ids(builder: ReplyBuilder) -> frozenset[str]:
    return frozenset(call.raw_id for call in builder.calls if call.raw_id)


def whole_response(
    body: JsonObject, builder: ReplyBuilder, faults: frozenset[Fault], *, patience: float
) -> HttpResponse:
    """Returns the whole reply, or half of it: as a complete body, or with the content-length of the whole."""
    if "missing-ids" in faults:
        body = make_id_remover(_call_ids(builder))(body)
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
    return HttpResponse(200, _write_chunks(chunks), media_type, {"cache-control": "no-cache"}, reset=reset)


async def _write_chunks(chunks: list[bytes | WaitStep]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        if isinstance(chunk, WaitStep):
            await asyncio.sleep(chunk.seconds)
        else:
            yield chunk


def _split_in_half(chunks: list[bytes | WaitStep]) -> tuple[list[bytes | WaitStep], list[bytes | WaitStep]]:
    """Splits the chunks into two non-empty halves; a single chunk is split inside."""
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
    """Yields the bytes of the stream and the waits between them."""
    context = builder.context
    render_context = _raw_id_context(provider, context, builder)
    renderer = provider.wire.stream_renderer(render_context, context.model, context.request)
    change_payload = make_id_remover(_call_ids(builder)) if "missing-ids" in faults else None
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
        if data:
            yield framing.feed(data) if framing else data
    if framing:
        yield framing.close()


def _is_leading_wait(steps: list[StreamStep], index: int) -> bool:
    """True for a wait at the start of the reply, which already delayed the response."""
    return all(isinstance(step, WaitStep) for step in steps[1:index])

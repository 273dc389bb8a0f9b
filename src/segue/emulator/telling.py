"""Encodes a reply in the API's format: whole, or as a stream with its waits, breaks and faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec

from segue.emulator.chaos import Fault, reworked, twice, without_ids
from segue.emulator.exchange import Answer
from segue.emulator.playing import Beat, Performance
from segue.emulator.providers.base import Provider, Reframed, Scene
from segue.emulator.turns import Cut, Trouble, Wait
from segue.models import identify
from segue.render.report import Report
from segue.wire.base import ApiError, JsonObject, Projection
from segue.wire.events import Failed, Finished
from segue.wire.idmap import IdMap, IdScheme
from segue.wire.names import ANY_NAME, NameMap

__all__ = ["at_once", "reply_body", "streamed"]


def _as_said(provider: Provider, context: Scene, builder: Performance) -> Projection:
    """Returns a render context that keeps the ids of the script, valid or not."""
    own = provider.wire.ids(identify(context.model))
    ids = IdMap(IdScheme(own.name, r"(?s).*", own.make), provider=provider.wire.provider, free=True)
    for call in builder.calls:
        ids.assign(call, call.name)
    return Projection(ids, NameMap(ANY_NAME), Report(target=provider.api))


def reply_body(provider: Provider, builder: Performance) -> JsonObject:
    return provider.wire.render_reply(builder.reply, _as_said(provider, builder.scene, builder))


def _ids(builder: Performance) -> frozenset[str]:
    return frozenset(call.raw_id for call in builder.calls if call.raw_id)


def at_once(body: JsonObject, builder: Performance, faults: frozenset[Fault], *, patience: float) -> Answer:
    """Returns the whole reply, or half of it: as a complete body, or with the content-length of the whole."""
    if "missing-ids" in faults:
        body = without_ids(_ids(builder))(body)
    data = msgspec.json.encode(body)
    answer = Answer(200, data, "text/plain" if "wrong-type" in faults else "application/json")
    half, rest = data[: len(data) // 2], data[len(data) // 2 :]
    if builder.breaks_off == Cut("end"):
        answer.content = half
    elif "reset-in-stream" in faults or builder.breaks_off is not None:
        answer.content, answer.length, answer.reset = half, len(data), True
    elif "stall" in faults:
        answer.content, answer.length = _timed([half, Wait(patience), rest]), len(data)
    return answer


def streamed(
    provider: Provider,
    builder: Performance,
    faults: frozenset[Fault],
    framing: Reframed | None,
    *,
    patience: float,
    in_words: Callable[[Trouble], ApiError],
) -> Answer:
    pieces = list(_pieces(provider, builder, faults, framing, in_words))
    if faults & {"stall", "reset-in-stream"}:
        before, after = _halves(pieces)
        stalled = [Wait(patience)] if "stall" in faults else []
        pieces = [*before, *stalled, *([] if "reset-in-stream" in faults else after)]
    kind = "text/html" if "wrong-type" in faults else framing.kind if framing else provider.media
    reset = "reset-in-stream" in faults or builder.breaks_off == Cut("reset")
    return Answer(200, _timed(pieces), kind, {"cache-control": "no-cache"}, reset=reset)


async def _timed(pieces: list[bytes | Wait]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, Wait):
            await asyncio.sleep(piece.seconds)
        else:
            yield piece


def _halves(pieces: list[bytes | Wait]) -> tuple[list[bytes | Wait], list[bytes | Wait]]:
    """Splits the chunks into two non-empty halves; a single chunk is split inside."""
    places = [place for place, piece in enumerate(pieces) if isinstance(piece, bytes)]
    if len(places) == 1:
        (place,) = places
        only = pieces[place]
        if isinstance(only, bytes):
            pieces = [*pieces[:place], only[: len(only) // 2], only[len(only) // 2 :], *pieces[place + 1 :]]
            return pieces[: place + 1], pieces[place + 1 :]
    middle = places[len(places) // 2] if places else 0
    return pieces[:middle], pieces[middle:]


def _pieces(
    provider: Provider,
    builder: Performance,
    faults: frozenset[Fault],
    framing: Reframed | None,
    in_words: Callable[[Trouble], ApiError],
) -> Iterator[bytes | Wait]:
    """Yields the bytes of the stream and the waits between them."""
    context = builder.scene
    projection = _as_said(provider, context, builder)
    renderer = provider.wire.stream_renderer(projection, context.model, context.request)
    rework = without_ids(_ids(builder)) if "missing-ids" in faults else None
    steps = list(builder.beats())
    for place, step in enumerate(steps):
        if isinstance(step, Wait):
            if not _is_first(steps, place):
                yield step
            continue
        if isinstance(step, Cut):
            return
        data = renderer.render((Failed(in_words(step)) if isinstance(step, Trouble) else step,))
        if rework is not None and data:
            data = reworked(data, rework)
        if "double-finish" in faults and isinstance(step, Finished):
            data = twice(data)
        if data:
            yield framing.feed(data) if framing else data
    if framing:
        yield framing.close()


def _is_first(steps: list[Beat], place: int) -> bool:
    """True for a wait at the start of the reply, which already delayed the response."""
    return all(isinstance(step, Wait) for step in steps[1:place])

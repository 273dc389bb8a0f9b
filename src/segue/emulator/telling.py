"""A performance as the bytes of an API: at once, or as a stream with its pauses, its breaks and the faults in it."""

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


def _as_said(provider: Provider, scene: Scene, performance: Performance) -> Projection:
    """Ids as the model said them, lawful or not."""
    own = provider.wire.ids(identify(scene.model))
    ids = IdMap(IdScheme(own.name, r"(?s).*", own.make), provider=provider.wire.provider, free=True)
    for call in performance.calls:
        ids.assign(call, call.name)
    return Projection(ids, NameMap(ANY_NAME), Report(target=provider.api))


def reply_body(provider: Provider, performance: Performance) -> JsonObject:
    return provider.wire.render_reply(performance.reply, _as_said(provider, performance.scene, performance))


def _ids(performance: Performance) -> frozenset[str]:
    return frozenset(call.raw_id for call in performance.calls if call.raw_id)


def at_once(body: JsonObject, performance: Performance, struck: frozenset[Fault], *, patience: float) -> Answer:
    """The whole reply, or half of it: as if that were all, or of a length that never comes."""
    if "missing-ids" in struck:
        body = without_ids(_ids(performance))(body)
    data = msgspec.json.encode(body)
    answer = Answer(200, data, "text/plain" if "wrong-type" in struck else "application/json")
    half, rest = data[: len(data) // 2], data[len(data) // 2 :]
    if performance.breaks_off == Cut("end"):
        answer.content = half
    elif "reset-in-stream" in struck or performance.breaks_off is not None:
        answer.content, answer.length, answer.reset = half, len(data), True
    elif "stall" in struck:
        answer.content, answer.length = _timed([half, Wait(patience), rest]), len(data)
    return answer


def streamed(
    provider: Provider,
    performance: Performance,
    struck: frozenset[Fault],
    reframed: Reframed | None,
    *,
    patience: float,
    in_words: Callable[[Trouble], ApiError],
) -> Answer:
    pieces = list(_pieces(provider, performance, struck, reframed, in_words))
    if struck & {"stall", "reset-in-stream"}:
        before, after = _halves(pieces)
        stalled = [Wait(patience)] if "stall" in struck else []
        pieces = [*before, *stalled, *([] if "reset-in-stream" in struck else after)]
    kind = "text/html" if "wrong-type" in struck else reframed.kind if reframed else provider.media
    reset = "reset-in-stream" in struck or performance.breaks_off == Cut("reset")
    return Answer(200, _timed(pieces), kind, {"cache-control": "no-cache"}, reset=reset)


async def _timed(pieces: list[bytes | Wait]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, Wait):
            await asyncio.sleep(piece.seconds)
        else:
            yield piece


def _halves(pieces: list[bytes | Wait]) -> tuple[list[bytes | Wait], list[bytes | Wait]]:
    """There is something in each of them: a stream of one piece is cut inside of it."""
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
    performance: Performance,
    struck: frozenset[Fault],
    reframed: Reframed | None,
    in_words: Callable[[Trouble], ApiError],
) -> Iterator[bytes | Wait]:
    """What is written, and when nothing is."""
    scene = performance.scene
    projection = _as_said(provider, scene, performance)
    renderer = provider.wire.stream_renderer(projection, scene.model, scene.request)
    rework = without_ids(_ids(performance)) if "missing-ids" in struck else None
    beats = list(performance.beats())
    for place, beat in enumerate(beats):
        if isinstance(beat, Wait):
            if not _is_first(beats, place):
                yield beat
            continue
        if isinstance(beat, Cut):
            return
        told = renderer.render((Failed(in_words(beat)) if isinstance(beat, Trouble) else beat,))
        if rework is not None and told:
            told = reworked(told, rework)
        if "double-finish" in struck and isinstance(beat, Finished):
            told = twice(told)
        if told:
            yield reframed.feed(told) if reframed else told
    if reframed:
        yield reframed.close()


def _is_first(beats: list[Beat], place: int) -> bool:
    """Whether nothing but the opening comes before: that was waited for before the answer began."""
    return all(isinstance(beat, Wait) for beat in beats[1:place])

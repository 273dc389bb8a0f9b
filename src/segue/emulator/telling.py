"""A performance as the bytes of an API: at once, or as a stream with its pauses, its breaks and the faults in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

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


def at_once(body: JsonObject, performance: Performance, struck: frozenset[Fault]) -> Answer:
    if "missing-ids" in struck:
        body = without_ids(_ids(performance))(body)
    data = msgspec.json.encode(body)
    cut = "reset-in-stream" in struck or performance.breaks_off
    kind = "text/plain" if "wrong-type" in struck else "application/json"
    return Answer(200, data[: len(data) // 2] if cut else data, kind, reset=cut)


def streamed(
    provider: Provider,
    performance: Performance,
    struck: frozenset[Fault],
    reframed: Reframed | None,
    *,
    patience: float,
    in_words: Callable[[Trouble], ApiError],
) -> Answer:
    kind = "text/html" if "wrong-type" in struck else reframed.kind if reframed else provider.media
    answer = Answer(200, b"", kind, {"cache-control": "no-cache"})
    answer.content = _pieces(provider, performance, struck, reframed, answer, patience, in_words)
    return answer


async def _pieces(
    provider: Provider,
    performance: Performance,
    struck: frozenset[Fault],
    reframed: Reframed | None,
    answer: Answer,
    patience: float,
    in_words: Callable[[Trouble], ApiError],
) -> AsyncIterator[bytes]:
    scene = performance.scene
    projection = _as_said(provider, scene, performance)
    renderer = provider.wire.stream_renderer(projection, scene.model, scene.request)
    rework = without_ids(_ids(performance)) if "missing-ids" in struck else None
    beats = list(performance.beats())
    for place, beat in enumerate(beats):
        if place == len(beats) // 2:
            if "stall" in struck:
                await asyncio.sleep(patience)
            if "reset-in-stream" in struck:
                answer.reset = True
                return
        if isinstance(beat, Wait):
            if not _is_first(beats, place):
                await asyncio.sleep(beat.seconds)
            continue
        if isinstance(beat, Cut):
            answer.reset = beat.how == "reset"
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

"""Requests to providers: sent, tried again while nothing has been said yet, and streamed.

A request is tried again at the same provider only before the first token of the reply: after a connection that failed,
a time that ran out, or an answer that says it will pass. An error that a provider puts into a stream before it has said
anything counts as one before the first token. Whatever breaks later is raised from the stream, and is the session's.
"""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.errors import RemoteProtocolError, UpstreamError
from segue.runtime import aws, faults, letters
from segue.runtime.events import Waiting
from segue.runtime.http import Http, Response, TransportError
from segue.runtime.letters import Letter
from segue.runtime.providers import Endpoint
from segue.wire.base import ApiError
from segue.wire.events import Failed, Opened, UsageTold
from segue.wire.registry import WIRES
from segue.wire.stream import TURN_KEY, StreamParser

__all__ = ["Patience", "Probed", "Stream", "Timeouts", "Upstream"]

Tell = Callable[[Waiting], None]

_ERROR_BODY = 1 << 18
_PEEKED = 1 << 18
_GOOD = 200
_PROBE = 15.0


class Timeouts(Struct, frozen=True):
    """In seconds: until a connection stands, until the first token came, and between two pieces of a reply.

    Models that think in silence do so for minutes.
    """

    connect: float = 10.0
    first: float = 300.0
    silence: float = 300.0


_USUAL = Timeouts()


class Patience(Struct, frozen=True):
    """How often a request is sent at most, and the waits between: each about twice the one before, up to `longest`.

    What a provider asks for counts more. Where it asks for more than `asked`, nobody waits: the error says how long.
    After silence the request is sent `silent` times in all: each of them took its whole time.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 20.0
    asked: float = 60.0
    silent: int = 2

    def wait(self, failures: int, error: UpstreamError, drawn: float) -> float | None:
        """How long to wait after so many failures, None where there is no point. `drawn` is between 0 and 1."""
        most = min(self.attempts, self.silent) if error.cause == "timeout" and error.status is None else self.attempts
        if not error.retryable or error.cause == "broken" or failures >= most:
            return None
        if error.retry_after is None:
            return min(self.longest, self.first * 2 ** (failures - 1)) * (0.5 + drawn / 2)
        # All who were refused together should not come back together.
        return error.retry_after + drawn * self.first if error.retry_after <= self.asked else None


_PATIENT = Patience()


class Stream:
    """The bytes of a reply as they come. A break in the middle is an `UpstreamError`; `aclose` it in any case."""

    def __init__(self, endpoint: Endpoint, response: Response, held: Sequence[bytes], silence: float) -> None:
        self._endpoint = endpoint
        self._response = response
        self._held = list(reversed(held))
        self._silence = silence
        self._over = False

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        if self._held:
            return self._held.pop()
        if self._over:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(self._silence):
                data = await self._response.read()
        except TimeoutError:
            await self.aclose()
            raise faults.late(self._endpoint, "nothing more came", self._silence) from None
        except TransportError as trouble:
            await self.aclose()
            raise faults.cut_off(self._endpoint, str(trouble)) from None
        if not data:
            await self.aclose()
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Gives up what has not come yet; the provider is told by the closed connection."""
        self._over = True
        self._held = []
        self._response.close()


class Probed(Struct, frozen=True):
    """What a question that costs nothing found out. `accepted` is None where that could not be told."""

    reachable: bool
    accepted: bool | None
    models: tuple[str, ...] = ()
    error: UpstreamError | None = None


class Upstream:
    """The way to all providers. It belongs to one event loop; `close` it there, or use it in an `async with`.

    `random` gives numbers between 0 and 1, `now` the time in UTC.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts = _USUAL,
        patience: Patience = _PATIENT,
        random: Callable[[], float] = chance.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        http: Http | None = None,
    ) -> None:
        self._timeouts = timeouts
        self._patience = patience
        self._random = random
        self._now = now
        self._http = Http(connect=timeouts.connect) if http is None else http

    async def __aenter__(self) -> Upstream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    async def open(
        self, endpoint: Endpoint, fragments: Sequence[bytes], *, tell: Tell = lambda waiting: None
    ) -> Stream:
        """The reply to a request, when its first token has come. `tell` hears of each wait before it begins."""
        import stamina
        import stamina.instrumentation

        # Waits are told to `tell`. Left alone, it would write them into a log, or on stdout.
        stamina.instrumentation.set_on_retry_hooks(())
        if endpoint.lacks_key:
            raise faults.no_key(endpoint)
        failures = 0

        def again(error: Exception) -> bool | float:
            nonlocal failures
            failures += 1
            wait = self._patience.wait(failures, error, self._random()) if isinstance(error, UpstreamError) else None
            if wait is None or not isinstance(error, UpstreamError):
                return False
            tell(
                Waiting(
                    provider=endpoint.provider,
                    model=endpoint.model,
                    why=error.brief,
                    seconds=wait,
                    attempt=failures,
                )
            )
            return wait

        async for attempt in stamina.retry_context(on=again, attempts=self._patience.attempts, timeout=None):
            with attempt:
                return await self._once(endpoint, fragments)
        raise AssertionError("the last attempt raises")

    async def _once(self, endpoint: Endpoint, fragments: Sequence[bytes]) -> Stream:
        credentials = await _credentials(endpoint)
        letter = letters.request(endpoint, fragments, now=self._now(), credentials=credentials)
        response, held = await self._within(
            endpoint, self._timeouts.first, "no first token came", self._begun(endpoint, letter)
        )
        return Stream(endpoint, response, held, self._timeouts.silence)

    async def _within(self, endpoint: Endpoint, seconds: float, what: str, work: Any) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise faults.late(endpoint, what, seconds) from None
        except TransportError as trouble:
            raise faults.lost(endpoint, trouble) from None

    async def _begun(self, endpoint: Endpoint, letter: Letter) -> tuple[Response, list[bytes]]:
        response = await self._http.send(letter)
        try:
            if response.status != _GOOD:
                data = await _whole(response)
                raise faults.answered(endpoint, response.status, response.headers, data, now=self._now())
            return response, await _first(endpoint, response)
        except BaseException:
            response.close()
            raise

    async def probe(self, endpoint: Endpoint, *, timeout: float = _PROBE) -> Probed:
        """Whether the provider is there and takes the key. It is asked for its list of models, which costs nothing."""
        if endpoint.lacks_key:
            return Probed(reachable=False, accepted=False, error=faults.no_key(endpoint))
        try:
            letter = letters.inquiry(endpoint, now=self._now(), credentials=await _credentials(endpoint))
            status, headers, data = await self._within(endpoint, timeout, "nothing came", self._asked(letter))
        except UpstreamError as error:
            return Probed(reachable=False, accepted=None, error=error)
        if status == _GOOD:
            return Probed(reachable=True, accepted=True, models=_listed(data))
        error = faults.answered(endpoint, status, headers, data, now=self._now())
        if error.cause == "auth":
            return Probed(reachable=True, accepted=False, error=error)
        # Not all keep such a list. Who asks too often is known, though.
        known = True if error.cause == "rate-limited" else None
        return Probed(reachable=True, accepted=known, error=None if error.cause == "missing" else error)

    async def _asked(self, letter: Letter) -> tuple[int, dict[str, str], bytes]:
        response = await self._http.send(letter)
        try:
            return response.status, dict(response.headers), await _whole(response, 1 << 24)
        finally:
            response.close()


async def _credentials(endpoint: Endpoint) -> aws.Credentials | None:
    signer = endpoint.signer
    if signer is None or isinstance(signer, aws.Credentials):
        return signer
    # These may be fetched anew, which blocks.
    return await asyncio.to_thread(signer.now)


async def _whole(response: Response, most: int = _ERROR_BODY) -> bytes:
    """The body of an answer, as much as came of it."""
    pieces: list[bytes] = []
    size = 0
    try:
        while size < most and (data := await response.read()):
            pieces.append(data)
            size += len(data)
    except TransportError:
        pass
    return b"".join(pieces)


async def _first(endpoint: Endpoint, response: Response) -> list[bytes]:
    """Reads until something is said, and gives what was read. An error that comes first is raised."""
    parser = WIRES[endpoint.api].open_stream(TURN_KEY)
    held: list[bytes] = []
    size = 0
    while size < _PEEKED:
        data = await response.read()
        if not data:
            if not held:
                raise TransportError("lost", "the answer is empty")
            _ended(endpoint, parser)
            break
        held.append(data)
        size += len(data)
        try:
            parser.feed(data)
        except RemoteProtocolError as error:
            raise faults.not_a_reply(endpoint, str(error)) from None
        events = [event for event in parser.events() if not isinstance(event, Opened | UsageTold)]
        if events and isinstance(events[0], Failed):
            raise faults.failed(endpoint, events[0].error)
        if events:
            break
    return held


def _ended(endpoint: Endpoint, parser: StreamParser) -> None:
    """A stream that said nothing before its end: an error, something else, or a reply without a word."""
    try:
        reply = parser.close()
    except RemoteProtocolError as error:
        if error.kind is None:
            raise faults.not_a_reply(endpoint, str(error)) from None
        told = ApiError(error.status or 0, error.message, kind=error.kind, code=error.code)
        raise faults.failed(endpoint, told) from None
    if reply.finish == "error":
        raise TransportError("lost", reply.cause or "the reply ended before it began")


def _listed(data: bytes) -> tuple[str, ...]:
    """The names in a list of models, however it is laid out."""
    try:
        body: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    lists = [body]
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        lists = [fields.get(key) for key in ("data", "models", "modelSummaries")]
    rows = [row for rows in lists if isinstance(rows, list) for row in cast("list[object]", rows)]
    found: list[str] = []
    for row in rows:
        if isinstance(row, dict):
            fields = cast("dict[str, object]", row)
            name = next((fields[key] for key in ("id", "modelId", "name") if isinstance(fields.get(key), str)), None)
            if isinstance(name, str):
                found.append(name.removeprefix("models/"))
    return tuple(found)

"""`ProviderClient`: sends requests to providers, retries them, and streams the replies.

A request is retried at the same provider only before the first token of the reply: after a connection failure, a
timeout, or a retryable error response. An error event in the stream before any content counts as before the first
token. Later failures are raised from the stream and handled by the session.
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
    """Timeouts in seconds: for connecting, for the first token, and between two chunks of a reply.

    Models may reason for minutes without sending anything.
    """

    connect: float = 10.0
    first: float = 300.0
    silence: float = 300.0


_USUAL = Timeouts()


class Patience(Struct, frozen=True):
    """The maximum number of attempts, and the delays between them: exponential backoff up to `max_delay`.

    A provider's `retry-after` takes precedence; if it exceeds `max_retry_after`, the request fails at once. After
    timeouts there are only `timeout_attempts` in all, as each took its whole time.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 20.0
    asked: float = 60.0
    silent: int = 2

    def wait(self, failures: int, error: UpstreamError, drawn: float) -> float | None:
        """The delay after this many failures; None to give up. `jitter` is between 0 and 1."""
        limit = min(self.attempts, self.silent) if error.cause == "timeout" and error.status is None else self.attempts
        if not error.retryable or error.cause == "broken" or failures >= limit:
            return None
        if error.retry_after is None:
            return min(self.longest, self.first * 2 ** (failures - 1)) * (0.5 + drawn / 2)
        # Jitter, so that clients that were rejected together do not retry together.
        return error.retry_after + drawn * self.first if error.retry_after <= self.asked else None


_PATIENT = Patience()


class Stream:
    """The bytes of a streamed reply. A failure raises `UpstreamError`; call `aclose` in any case."""

    def __init__(self, endpoint: Endpoint, response: Response, buffered: Sequence[bytes], idle: float) -> None:
        self._endpoint = endpoint
        self._response = response
        self._held = list(reversed(buffered))
        self._silence = idle
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
            raise faults.late(self._endpoint, "no more data", self._silence) from None
        except TransportError as error:
            await self.aclose()
            raise faults.cut_off(self._endpoint, str(error)) from None
        if not data:
            await self.aclose()
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Closes the connection, which cancels the reply at the provider."""
        self._over = True
        self._held = []
        self._response.close()


class Probed(Struct, frozen=True):
    """The result of a probe. `accepted` is whether the API key is valid, None if unknown."""

    reachable: bool
    accepted: bool | None
    models: tuple[str, ...] = ()
    error: UpstreamError | None = None


class Upstream:
    """A client for all providers. It belongs to one event loop; `close` it there, or use `async with`.

    `random` returns numbers between 0 and 1, `now` the time in UTC.
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
        """Sends a request and returns the stream after its first token. `on_retry` is called before each delay."""
        import stamina
        import stamina.instrumentation

        # Retries are reported to `on_retry`; by default stamina would log or print them.
        stamina.instrumentation.set_on_retry_hooks(())
        if endpoint.lacks_key:
            raise faults.no_key(endpoint)
        failures = 0

        def retry_delay(error: Exception) -> bool | float:
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

        async for attempt in stamina.retry_context(on=retry_delay, attempts=self._patience.attempts, timeout=None):
            with attempt:
                return await self._once(endpoint, fragments)
        raise AssertionError("the last attempt raises")

    async def _once(self, endpoint: Endpoint, fragments: Sequence[bytes]) -> Stream:
        credentials = await _credentials(endpoint)
        request = letters.request(endpoint, fragments, now=self._now(), credentials=credentials)
        response, buffered = await self._within(
            endpoint, self._timeouts.first, "no first token", self._begun(endpoint, request)
        )
        return Stream(endpoint, response, buffered, self._timeouts.silence)

    async def _within(self, endpoint: Endpoint, seconds: float, what: str, work: Any) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise faults.late(endpoint, what, seconds) from None
        except TransportError as error:
            raise faults.lost(endpoint, error) from None

    async def _begun(self, endpoint: Endpoint, request: Letter) -> tuple[Response, list[bytes]]:
        response = await self._http.send(request)
        try:
            if response.status != _GOOD:
                data = await _whole(response)
                raise faults.answered(endpoint, response.status, response.headers, data, now=self._now())
            return response, await _first(endpoint, response)
        except BaseException:
            response.close()
            raise

    async def probe(self, endpoint: Endpoint, *, timeout: float = _PROBE) -> Probed:
        """Checks whether the provider is reachable and accepts the key, by a free request for its list of models."""
        if endpoint.lacks_key:
            return Probed(reachable=False, accepted=False, error=faults.no_key(endpoint))
        try:
            request = letters.inquiry(endpoint, now=self._now(), credentials=await _credentials(endpoint))
            status, headers, data = await self._within(endpoint, timeout, "no response", self._asked(request))
        except UpstreamError as error:
            return Probed(reachable=False, accepted=None, error=error)
        if status == _GOOD:
            return Probed(reachable=True, accepted=True, models=_listed(data))
        error = faults.answered(endpoint, status, headers, data, now=self._now())
        if error.cause == "auth":
            return Probed(reachable=True, accepted=False, error=error)
        # Not all providers have a model list. A rate limit error, though, means that the key is valid.
        accepted = True if error.cause == "rate-limited" else None
        return Probed(reachable=True, accepted=accepted, error=None if error.cause == "missing" else error)

    async def _asked(self, request: Letter) -> tuple[int, dict[str, str], bytes]:
        response = await self._http.send(request)
        try:
            return response.status, dict(response.headers), await _whole(response, 1 << 24)
        finally:
            response.close()


async def _credentials(endpoint: Endpoint) -> aws.Credentials | None:
    signer = endpoint.signer
    if signer is None or isinstance(signer, aws.Credentials):
        return signer
    # Fetching credentials may block.
    return await asyncio.to_thread(signer.now)


async def _whole(response: Response, limit: int = _ERROR_BODY) -> bytes:
    """Reads the body of a response, up to a limit or a connection failure."""
    chunks: list[bytes] = []
    size = 0
    try:
        while size < limit and (data := await response.read()):
            chunks.append(data)
            size += len(data)
    except TransportError:
        pass
    return b"".join(chunks)


async def _first(endpoint: Endpoint, response: Response) -> list[bytes]:
    """Reads until the first content event, and returns the bytes read. An error event before it is raised."""
    parser = WIRES[endpoint.api].open_stream(TURN_KEY)
    buffered: list[bytes] = []
    size = 0
    while size < _PEEKED:
        data = await response.read()
        if not data:
            if not buffered:
                raise TransportError("lost", "the response is empty")
            _ended(endpoint, parser)
            break
        buffered.append(data)
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
    return buffered


def _ended(endpoint: Endpoint, parser: StreamParser) -> None:
    """A stream that ended without content: raises its error, if it is not a valid empty reply."""
    try:
        reply = parser.close()
    except RemoteProtocolError as error:
        if error.kind is None:
            raise faults.not_a_reply(endpoint, str(error)) from None
        api_error = ApiError(error.status or 0, error.message, kind=error.kind, code=error.code)
        raise faults.failed(endpoint, api_error) from None
    if reply.finish == "error":
        raise TransportError("lost", reply.cause or "the reply is empty")


def _listed(data: bytes) -> tuple[str, ...]:
    """Parses the model names from a model list of any API."""
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

"""`ProviderClient`: sends requests to providers, retries them, and streams the replies.

A request is retried at the same provider only before the first token of the reply: after a connection failure, a
timeout, a retryable error response, or an error event in the stream before any content. Later failures are raised
while the stream is read, and handled by the session.
"""

from __future__ import annotations

import asyncio
import random as chance
from asyncio import sleep
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from msgspec import Struct

from segue.bridge import aws, http_requests, provider_errors
from segue.bridge.failover import is_worth_waiting
from segue.bridge.http_requests import HttpRequest
from segue.bridge.listings import ModelEntry, parse_models
from segue.bridge.provider_errors import TransportError
from segue.bridge.providers import Endpoint
from segue.errors import ProviderError, RemoteProtocolError
from segue.http_client import HttpClient, HttpResponse
from segue.reply import ReplyReader
from segue.runtime.events import RetryScheduled
from segue.runtime.threads import run_in_thread
from segue.wire.base import ApiError
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits
from segue.wire.stream.events import Event, Failed

OnRetry = Callable[[RetryScheduled], None]

_MAX_ERROR_BODY = 1 << 18
_MAX_PEEK = 1 << 18
_HTTP_OK = 200
_PROBE_TIMEOUT = 15.0


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds: for connecting, for the first token, and between two chunks of a reply.

    Models may reason for minutes without sending anything.
    """

    connect: float = 10.0
    first_token: float = 300.0
    idle: float = 300.0


_DEFAULT_TIMEOUTS = Timeouts()


class RetryPolicy(Struct, frozen=True):
    """The maximum number of attempts, and the delays between them: exponential backoff up to `max_delay`.

    A provider's `retry-after` takes precedence; if it exceeds `max_retry_after`, the request fails at once. After a
    timeout the maximum is `timeout_attempts`, because each attempt takes the whole timeout.
    """

    attempts: int = 4
    first_delay: float = 0.5
    max_delay: float = 20.0
    max_retry_after: float = 60.0
    timeout_attempts: int = 2

    def delay_after(self, failures: int, error: ProviderError, jitter: float) -> float | None:
        """Return the delay after this many failures; None to give up. `jitter` is between 0 and 1."""
        limit = (
            min(self.attempts, self.timeout_attempts)
            if error.cause == "timeout" and error.status is None
            else self.attempts
        )
        if not error.retryable or error.cause == "broken" or failures >= limit:
            return None
        if error.retry_after is None:
            return min(self.max_delay, self.first_delay * 2 ** (failures - 1)) * (0.5 + jitter / 2)
        # Jitter, so that clients that were rejected together do not retry together.
        return error.retry_after + jitter * self.first_delay if error.retry_after <= self.max_retry_after else None


_DEFAULT_RETRY_POLICY = RetryPolicy()


class Stream:
    """The events of a streamed reply, in lists. A failure raises `ProviderError`; always call `aclose` at the end.

    `reader` has parsed everything that was received so far.
    """

    def __init__(
        self, endpoint: Endpoint, response: HttpResponse, reader: ReplyReader, first: list[Event], idle: float
    ) -> None:
        self.reader = reader
        self._endpoint = endpoint
        self._response = response
        self._first_events: list[Event] | None = first
        self._idle_timeout = idle
        self._is_closed = False

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> list[Event]:
        if self._first_events is not None:
            events, self._first_events = self._first_events, None
            return events
        if self._is_closed:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(self._idle_timeout):
                data = await self._response.read()
        except TimeoutError:
            await self.aclose()
            raise provider_errors.timeout_error(self._endpoint, "no more data", self._idle_timeout) from None
        except TransportError as error:
            await self.aclose()
            raise provider_errors.stream_error(self._endpoint, str(error)) from None
        if not data:
            await self.aclose()
            raise StopAsyncIteration
        events = self.reader.feed(data)
        if self.reader.limit_error is not None:
            await self.aclose()
            raise provider_errors.limit_error(self._endpoint, self.reader.limit_error)
        return events

    async def aclose(self) -> None:
        """Close the connection, which cancels the reply at the provider."""
        self._is_closed = True
        self._first_events = None
        self._response.close()


class ProbeResult(Struct, frozen=True):
    """The result of a probe. `accepted` is whether the API key is valid, None if unknown."""

    reachable: bool
    accepted: bool | None
    models: tuple[ModelEntry, ...] = ()
    error: ProviderError | None = None


class ProviderClient:
    """A client for all providers. It belongs to one event loop; `close` it there, or use `async with`.

    `random` returns numbers between 0 and 1, `now` the time in UTC. A reply above the `limits` is cancelled, and fails
    with an error that is not retried.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts = _DEFAULT_TIMEOUTS,
        retry_policy: RetryPolicy = _DEFAULT_RETRY_POLICY,
        random: Callable[[], float] = chance.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        http: HttpClient | None = None,
        limits: ReplyLimits = DEFAULT_LIMITS,
    ) -> None:
        self._timeouts = timeouts
        self._limits = limits
        self._retry_policy = retry_policy
        self._random = random
        self._now = now
        self._http = HttpClient(connect_timeout=timeouts.connect) if http is None else http

    async def __aenter__(self) -> ProviderClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def open(
        self,
        endpoint: Endpoint,
        fragments: Sequence[bytes],
        open_reader: Callable[[], ReplyReader],
        *,
        on_retry: OnRetry = lambda event: None,
        first_byte: float | None = None,
    ) -> Stream:
        """Send a request and return the stream after its first token. `on_retry` is called before each delay.

        `open_reader` returns a new reader for the reply; it is called for each attempt. `first_byte` is the longest
        wait for the head of the response, where another endpoint can take over.
        """
        if endpoint.lacks_key:
            raise provider_errors.missing_key_error(endpoint)
        failures = 0
        while True:
            try:
                return await self._open_once(endpoint, fragments, open_reader(), first_byte)
            except ProviderError as error:
                failures += 1
                delay = self._retry_policy.delay_after(failures, error, self._random())
                if delay is None or not is_worth_waiting(error, delay, has_successor=first_byte is not None):
                    raise
                on_retry(
                    RetryScheduled(
                        provider=endpoint.provider,
                        model=endpoint.model,
                        why=error.brief,
                        seconds=delay,
                        attempt=failures,
                    )
                )
            await sleep(delay)

    async def _open_once(
        self, endpoint: Endpoint, fragments: Sequence[bytes], reader: ReplyReader, first_byte: float | None
    ) -> Stream:
        credentials = await _credentials(endpoint)
        request = http_requests.reply_request(endpoint, fragments, now=self._now(), credentials=credentials)
        reader.set_limits(self._limits)
        opening = self._open_response(endpoint, request._replace(first_byte=first_byte), reader)
        response, events = await self._with_timeout(endpoint, self._timeouts.first_token, "no first token", opening)
        return Stream(endpoint, response, reader, events, self._timeouts.idle)

    async def _with_timeout(self, endpoint: Endpoint, seconds: float, what: str, work: Any) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise provider_errors.timeout_error(endpoint, what, seconds) from None
        except TransportError as error:
            raise provider_errors.connection_error(endpoint, error) from None

    async def _open_response(
        self, endpoint: Endpoint, request: HttpRequest, reader: ReplyReader
    ) -> tuple[HttpResponse, list[Event]]:
        response = await self._http.send(request)
        try:
            if response.status != _HTTP_OK:
                data = await _read_body(response)
                raise provider_errors.response_error(endpoint, response.status, response.headers, data, now=self._now())
            return response, await _read_first_token(endpoint, response, reader)
        except BaseException:
            response.close()
            raise

    async def probe(self, endpoint: Endpoint, *, timeout: float = _PROBE_TIMEOUT) -> ProbeResult:
        """Check whether the provider is reachable and accepts the key, by a free request for its list of models."""
        if endpoint.lacks_key:
            return ProbeResult(reachable=False, accepted=False, error=provider_errors.missing_key_error(endpoint))
        try:
            status, headers, data = await self._fetch_models(endpoint, timeout, needs_key=True)
        except ProviderError as error:
            return ProbeResult(reachable=False, accepted=None, error=error)
        if status == _HTTP_OK:
            return ProbeResult(reachable=True, accepted=True, models=parse_models(data, endpoint.provider))
        error = provider_errors.response_error(endpoint, status, headers, data, now=self._now())
        if error.cause == "auth":
            return ProbeResult(reachable=True, accepted=False, error=error)
        # Not all providers have a model list. A rate limit error, though, means that the key is valid.
        accepted = True if error.cause == "rate-limited" else None
        return ProbeResult(reachable=True, accepted=accepted, error=None if error.cause == "missing" else error)

    async def list_models(self, endpoint: Endpoint, *, timeout: float = _PROBE_TIMEOUT) -> tuple[ModelEntry, ...]:
        """Return the models that a provider or a server has; raises `ProviderError`."""
        if endpoint.lacks_key:
            raise provider_errors.missing_key_error(endpoint)
        status, headers, data = await self._fetch_models(endpoint, timeout)
        if status != _HTTP_OK:
            raise provider_errors.response_error(endpoint, status, headers, data, now=self._now())
        return parse_models(data, endpoint.provider)

    async def list_loaded_models(
        self, endpoint: Endpoint, *, timeout: float = _PROBE_TIMEOUT
    ) -> tuple[ModelEntry, ...]:
        """Return the models that a server has in memory; none if it does not list them."""
        request = http_requests.loaded_models_request(endpoint, now=self._now())
        if request is None:
            return ()
        status, _, data = await self._with_timeout(endpoint, timeout, "no response", self._fetch(request))
        return parse_models(data, endpoint.provider) if status == _HTTP_OK else ()

    async def _fetch_models(
        self, endpoint: Endpoint, timeout: float, *, needs_key: bool = False
    ) -> tuple[int, dict[str, str], bytes]:
        credentials = await _credentials(endpoint)
        request = http_requests.models_request(endpoint, now=self._now(), credentials=credentials, needs_key=needs_key)
        return await self._with_timeout(endpoint, timeout, "no response", self._fetch(request))

    async def _fetch(self, request: HttpRequest) -> tuple[int, dict[str, str], bytes]:
        response = await self._http.send(request)
        try:
            return response.status, dict(response.headers), await _read_body(response, 1 << 24)
        finally:
            response.close()


async def _credentials(endpoint: Endpoint) -> aws.Credentials | None:
    signer = endpoint.signer
    if signer is None or isinstance(signer, aws.Credentials):
        return signer
    # Fetching credentials may block.
    return await run_in_thread(signer.get)


async def _read_body(response: HttpResponse, limit: int = _MAX_ERROR_BODY) -> bytes:
    """Read the body of a response, up to a limit or a connection failure. An encoded error body counts as empty."""
    chunks: list[bytes] = []
    size = 0
    try:
        while size < limit and (data := await response.read()):
            chunks.append(data)
            size += len(data)
    except TransportError as error:
        if error.kind == "encoding" and response.status == _HTTP_OK:
            raise
    return b"".join(chunks)


async def _read_first_token(endpoint: Endpoint, response: HttpResponse, reader: ReplyReader) -> list[Event]:
    """Read until the first content, and return the events read. An error event before any content is raised."""
    events: list[Event] = []
    size = 0
    while size < _MAX_PEEK:
        data = await response.read()
        if not data:
            if not size:
                raise TransportError("lost", "the response is empty")
            _check_empty_stream(endpoint, reader)
            break
        size += len(data)
        try:
            events += reader.feed(data)
        except RemoteProtocolError as error:
            raise provider_errors.invalid_reply_error(endpoint, str(error)) from None
        if reader.limit_error is not None:
            raise provider_errors.limit_error(endpoint, reader.limit_error)
        if isinstance(reader.first_content, Failed):
            raise provider_errors.api_error(endpoint, reader.first_content.error)
        if reader.first_content is not None:
            break
    return events


def _check_empty_stream(endpoint: Endpoint, reader: ReplyReader) -> None:
    """Raise the error of a stream that ended without content, unless it is a valid empty reply."""
    try:
        reply = reader.close()
    except RemoteProtocolError as error:
        if error.kind is None:
            raise provider_errors.invalid_reply_error(endpoint, str(error)) from None
        api_error = ApiError(error.status or 0, error.message, kind=error.kind, code=error.code)
        raise provider_errors.api_error(endpoint, api_error) from None
    if reply.finish == "error":
        raise TransportError("lost", reply.raw_finish or "the reply is empty")

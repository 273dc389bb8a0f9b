"""`Passthrough`: passes requests on to providers and their responses back, both as they arrive.

Nothing is kept of the bodies but their ends, for model and usage, and a short error, in which keys are masked.
Only where hooks see them they are read whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from segue.bridge.caller_key import expected_key_headers
from segue.bridge.http_requests import raw_request
from segue.bridge.provider_errors import TransportError, connection_error, missing_key_error
from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.canonical.request import Usage
from segue.gateway.bodies import BodyError, DisconnectedError, iter_body
from segue.gateway.limits import Denied
from segue.gateway.passthrough_routes import PassthroughRoute, request_headers, response_headers
from segue.gateway.passthrough_usage import BodyEnds, find_model, find_usage
from segue.gateway.responses import Receive, Response
from segue.http_client import HttpClient, HttpResponse

_MAX_ERROR = 1 << 18
_MAX_CHECKED = 64 * 2**20
_ERROR_STATUS = 400


Headers: TypeAlias = Sequence[tuple[str, str]]
Check: TypeAlias = Callable[[bytes], Awaitable[bytes | Denied]]
"""Returns the data to go on with, or why it is denied."""


class PassthroughRequest(Struct, frozen=True):
    """A client's request. `vendor_keys` are its keys without `client_key`, which is not passed on."""

    method: str
    path: str
    query: str
    headers: Headers
    vendor_keys: tuple[str, ...] = ()
    client_key: str = ""

    @property
    def has_body(self) -> bool:
        return any(
            name == "transfer-encoding" or (name == "content-length" and value != "0") for name, value in self.headers
        )

    def with_body(self, body: bytes) -> PassthroughRequest:
        """Return the request with the headers of another body."""
        dropped = ("content-length", "content-encoding", "transfer-encoding")
        kept = [(name, value) for name, value in self.headers if name not in dropped]
        return replace(self, headers=[*kept, ("content-length", str(len(body)))])


class Passthrough:
    """The passthrough routes, which can be replaced while the gateway runs. `open_client` returns the HTTP client."""

    def __init__(self, open_client: Callable[[], HttpClient], timeout: float) -> None:
        self._routes: tuple[PassthroughRoute, ...] = ()
        self._open_client = open_client
        self.timeout = timeout

    def replace(self, routes: tuple[PassthroughRoute, ...]) -> None:
        self._routes = routes

    @property
    def problems(self) -> Mapping[str, str]:
        """Why routes can't be served, by their names."""
        keyed = (route for route in self._routes if route.settings.auth == "gateway" and route.endpoint.lacks_key)
        return {route.name: missing_key_error(route.endpoint).message for route in keyed}

    def find(self, method: str, path: str, headers: Mapping[str, str]) -> PassthroughRoute | None:
        """Return the first route that a request is passed on by."""
        return next((route for route in self._routes if route.settings.takes(method, path, headers)), None)

    async def run(
        self,
        route: PassthroughRoute,
        request: PassthroughRequest,
        receive: Receive,
        response: Response,
        check: Check | None,
    ) -> Usage | None:
        """Answer a request of a passthrough route, and return the usage of its response."""
        return await _run_exchange(route, request, self._open_client(), receive, response, self.timeout, check)


async def _run_exchange(
    route: PassthroughRoute,
    request: PassthroughRequest,
    client: HttpClient,
    receive: Receive,
    response: Response,
    timeout: float,
    check: Check | None,
) -> Usage | None:
    """Send the request on and its response back. `timeout` is the longest silence in seconds."""
    endpoint = route.endpoint
    if route.settings.auth == "client":
        if not request.vendor_keys:
            await response.send_error(401, f"this route needs your own key in {expected_key_headers(endpoint)}")
            return None
        endpoint = replace(endpoint, key=Secret(request.vendor_keys[0]))
    if endpoint.lacks_key:
        await response.send_error(503, missing_key_error(endpoint).message, kind="no-key")
        return None
    upload = _Upload(receive, route.settings.max_mb * 2**20, timeout)
    path = route.build_path(request.path, request.query, request.client_key)
    headers = request_headers(request.headers, request.client_key)
    http_request = raw_request(endpoint, request.method, path, headers, now=datetime.now(UTC))
    watcher = asyncio.create_task(_watch(upload, receive, asyncio.current_task()))
    try:
        upstream = await upload.send(client, http_request, has_body=request.has_body)
        try:
            ends = await _pass_back(upstream, endpoint, response, timeout, check)
        finally:
            upstream.close()
        if ends is not None:
            response.record.model = find_model(ends, path, upload.ends)
            return find_usage(ends)
    except BodyError as error:
        await response.send_error(error.status, str(error))
    except TransportError as error:
        await _fail(response, endpoint, error)
    finally:
        watcher.cancel()
    return None


async def _watch(upload: _Upload, receive: Receive, running: asyncio.Task[Any] | None) -> None:
    """Cancel the exchange when the client goes away after its request."""
    await upload.is_complete.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
    if running is not None:
        running.cancel()


class _Upload:
    """Sends the body of a request as it arrives."""

    def __init__(self, receive: Receive, limit: int, timeout: float) -> None:
        self._receive = receive
        self._limit = limit
        self._timeout = timeout
        self._failure: BodyError | DisconnectedError | None = None
        self.is_complete = asyncio.Event()
        self.ends = BodyEnds()

    async def send(self, client: HttpClient, request: Any, *, has_body: bool) -> HttpResponse:
        """Return the head of the response; a `BodyError` of the client's body is raised unchanged."""
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                if not has_body:
                    self.is_complete.set()
                    return await client.send(request)
                return await client.send(request, self._iter_chunks(deadline))
        except TimeoutError:
            raise TransportError("timeout", f"no response within {self._timeout:g} s") from None
        except TransportError:
            if self._failure is not None:
                raise self._failure from None
            raise

    async def _iter_chunks(self, deadline: asyncio.Timeout) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        try:
            async for chunk in iter_body(self._receive, self._limit):
                self.ends.add(chunk)
                yield chunk
                deadline.reschedule(loop.time() + self._timeout)
            self.is_complete.set()
        except (BodyError, DisconnectedError) as error:
            self._failure = error
            raise


async def _pass_back(
    upstream: HttpResponse, endpoint: Endpoint, response: Response, timeout: float, check: Check | None
) -> BodyEnds | None:
    """Send a response to the client, and return the ends of its body; None for an error."""
    headers = response_headers(upstream.header_items)
    if upstream.status >= _ERROR_STATUS:
        data = await _read_error(upstream, endpoint, timeout)
        headers = [(name, value) for name, value in headers if name != "content-length"]
        await response.start_items(upstream.status, [*headers, ("content-length", str(len(data)))])
        await response.end(data)
        response.record.error = f"{endpoint.provider} answered with {upstream.status}"
        return None
    if check is not None:
        return await _pass_checked(upstream, headers, response, timeout, check)
    await response.start_items(upstream.status, headers)
    ends = BodyEnds()
    while data := await _read(upstream, timeout):
        await response.write(data)
        ends.add(data)
    await response.end()
    return ends


async def _pass_checked(
    upstream: HttpResponse, headers: Headers, response: Response, timeout: float, check: Check
) -> BodyEnds:
    """Send a whole response as it is after the check."""
    data = bytearray()
    while part := await _read(upstream, timeout):
        data += part
        if len(data) > _MAX_CHECKED:
            raise TransportError("invalid", f"the response has more than {_MAX_CHECKED:,} bytes")
    checked = await check(bytes(data))
    if isinstance(checked, Denied):
        response.denied = checked
        await response.send_denial(checked)
    else:
        kept = [(name, value) for name, value in headers if name != "content-length"]
        await response.start_items(upstream.status, [*kept, ("content-length", str(len(checked)))])
        await response.end(checked)
    return BodyEnds(bytes(data))


async def _read(upstream: HttpResponse, timeout: float) -> bytes:
    try:
        async with asyncio.timeout(timeout):
            return await upstream.read()
    except TimeoutError:
        raise TransportError("timeout", f"no data within {timeout:g} s") from None


async def _read_error(upstream: HttpResponse, endpoint: Endpoint, timeout: float) -> bytes:
    """Return the body of an error without the key, which some providers quote."""
    body = b""
    while len(body) < _MAX_ERROR and (data := await _read(upstream, timeout)):
        body += data
    text = body.decode("utf-8", "surrogateescape")
    return (endpoint.key.mask_in(text) if endpoint.key is not None else text).encode("utf-8", "surrogateescape")


async def _fail(response: Response, endpoint: Endpoint, error: TransportError) -> None:
    """Answer with the failure of the connection; a response that has begun is cut off."""
    failure = connection_error(endpoint, error)
    message = failure.message.replace(endpoint.name, endpoint.provider)
    if response.has_begun:
        response.record.error = message
    else:
        await response.send_error(504 if failure.cause == "timeout" else 502, message)

"""One attempt at one target: the upstream request, and the conversion of its response for the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil

from msgspec.structs import replace

from segue._convert import ConvertedExchange, DecodedBody, convert_job
from segue._stream import ReplyStream
from segue.bridge import aws, provider_errors
from segue.bridge.bounds import estimate_input
from segue.bridge.caching import has_billing_header, remove_billing_header
from segue.bridge.caller import Caller
from segue.bridge.content_encoding import find_encoding_error
from segue.bridge.envelopes import EndpointBinding, fingerprint_key
from segue.bridge.http_requests import HttpRequest, reply_request
from segue.bridge.provider_errors import TransportErrorKind
from segue.bridge.providers import Endpoint
from segue.bridge.reasoning import ReasoningRestorer, ReplySealer
from segue.bridge.routes import Route
from segue.bridge.stored_responses import repeated_fields
from segue.bridge.upstream_body import keep_stateless, place_cache_fields, prepend_fields
from segue.canonical.blocks import Block, Message, ToolCall
from segue.canonical.request import Reply, Usage
from segue.canonical.tokens import estimate_message
from segue.conversion.convert import ConvertJob
from segue.errors import ProviderError, RemoteProtocolError
from segue.models import parse_model
from segue.reply import ReadReply, ReplyOptions, SentRequest, read_reply
from segue.wire.base import ApiError, Wire
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits
from segue.wire.registry import WIRES, find_wire_or_server

_HTTP_OK, _HTTP_BAD_REQUEST = 200, 400
_MAX_ERROR_BODY = 1 << 18
_RESPONSES = "openai-responses"
# How connections fail before a provider has the request.
_UNREACHED = frozenset[TransportErrorKind | None]({"connect", "tls", "proxy", "credentials"})
_REASONING_ERROR = re.compile(r"thinking|reasoning|thought|signature|encrypted_content", re.IGNORECASE)


class Attempt:
    """A request to one target. `salt` is unique for each exchange.

    `restorer` restores the reasoning that the caller sends back, if there may be some. `decoded` is the body, if it is
    parsed already. Without `reasoning`, all reasoning is dropped from the request.
    """

    def __init__(
        self,
        caller: Caller,
        body: bytes,
        route: Route,
        endpoint: Endpoint,
        *,
        restorer: ReasoningRestorer | None,
        decoded: DecodedBody | None,
        salt: str,
        client: str,
        reasoning: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self.target: Wire = find_wire_or_server(endpoint.api, endpoint.profile, argument="api")
        self._caller = caller
        self._route = route
        self._salt = salt
        self._client = client
        self._chunks: list[bytes] = []
        self._size = 0
        self._now = datetime.fromtimestamp(0, UTC)
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._limits = DEFAULT_LIMITS
        self.sealer: ReplySealer | None = None
        self.opening: Block | None = None
        """A block that the reply begins with for the caller."""
        self.stream: ReplyStream | None = None
        self._whole_reply: Reply | None = None
        self.is_sent = False
        self.failure: TransportErrorKind | None = None
        """How the connection failed."""
        self.has_reasoning = reasoning
        self.converted, self.data = self._convert(body, restorer, decoded)

    # ------------------------------------------------------------------------------------------------------ the request

    def _convert(
        self, body: bytes, restorer: ReasoningRestorer | None, decoded: DecodedBody | None
    ) -> tuple[ConvertedExchange, bytes]:
        caller, endpoint, route = self._caller, self.endpoint, self._route
        removed: str | None = None
        is_foreign = endpoint.api != caller.wire.base_api
        if is_foreign and has_billing_header(caller.members_of(body)):
            (body, removed), decoded = remove_billing_header(body), None
        policy = replace(route.policy, body_model="alias")
        policy = policy if self.has_reasoning else replace(policy, reasoning="none")
        job = ConvertJob(
            target=self.target,
            source=caller.wire,
            base_wire=WIRES[self.target.name],
            model=endpoint.model,
            tool_format=endpoint.tool_format,
            policy=policy,
            restore=restorer,
            needs_transcript=self._is_prefix_bound,
        )
        converted = convert_job(body, job, decoded)
        if removed is not None:
            converted.report.add("dropped", removed, subject="system", level="note")
        data = self._keep_reasoning(self._select_stream(converted.data))
        if route.cache == "auto":
            data = place_cache_fields(data, endpoint, client=self._client, route=route.name)
        return converted, data

    @property
    def _is_prefix_bound(self) -> bool:
        """Whether the target binds reasoning to the exact prompt, so that its digest is needed (ANT-28)."""
        return self.target.constraints(parse_model(self.endpoint.model)).reasoning_binding == "prefix"

    def _select_stream(self, data: bytes) -> bytes:
        """Set the fields that select a stream, if the caller's path does and the provider's does not."""
        if not self._caller.api_path.stream or self.target.stream_path is not None:
            return data
        return prepend_fields(data, self.target.stream_fields)

    def _keep_reasoning(self, data: bytes) -> bytes:
        """Store nothing at the provider, unless the caller uses a Responses API: its own fields decide then."""
        return data if self._caller.wire.name == _RESPONSES else keep_stateless(data, self.endpoint)

    def build_request(self, *, now: datetime, credentials: aws.Credentials | None) -> HttpRequest:
        self._now = now
        self.is_sent = True
        headers = self._caller.passed_headers(WIRES[self.endpoint.api].provider)
        return reply_request(
            self.endpoint, [self.data], now=now, credentials=credentials, stream=self._caller.stream, headers=headers
        )

    # ----------------------------------------------------------------------------------------------------- the response

    def receive_head(
        self, status: int, headers: Mapping[str, str], sealer: ReplySealer | None, limits: ReplyLimits
    ) -> None:
        self._status, self._headers = status, headers
        self._limits = limits
        self.sealer = sealer
        if status == _HTTP_OK and self._caller.stream:
            self.stream = self.converted.open_stream(self._sent_request, limits)

    @property
    def _sent_request(self) -> SentRequest:
        model = self._caller.model if self._route.keeps_model_name else None
        created = int(self._now.timestamp())
        options = ReplyOptions(model, self._salt, self.sealer, created, self._route.buffer_tool_calls, self.opening)
        return self.converted.prepare_reply(replace(options, references=repeated_fields(self._caller)))

    def check_encoding(self) -> ProviderError | None:
        """Return the error for a response that is compressed, which was not requested."""
        why = find_encoding_error(self._headers.get("content-encoding"))
        return None if why is None else provider_errors.invalid_reply_error(self.endpoint, why)

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the response, and return the bytes for the caller; whole replies are kept until the end."""
        if self.stream is not None:
            return self.stream.feed(data)
        if not self.is_full:
            self._chunks.append(data)
            self._size += len(data)
        return b""

    @property
    def is_full(self) -> bool:
        """Whether a whole response is larger than it may be: the rest is not read."""
        return self._size > (self._limits.bytes if self._status == _HTTP_OK else _MAX_ERROR_BODY)

    def find_response_error(self, now: datetime) -> ProviderError | None:
        """Return the error of a complete response with an error status."""
        if self._status == _HTTP_OK:
            return None
        return provider_errors.response_error(
            self.endpoint, self._status, self._headers, b"".join(self._chunks), now=now
        )

    def names_reasoning(self, error: ProviderError) -> bool:
        """Return whether the provider rejected the request for its reasoning, which it can be sent without."""
        if not self.has_reasoning or error.status != _HTTP_BAD_REQUEST:
            return False
        # Model names such as kimi-k2-thinking are part of messages.
        return _REASONING_ERROR.search(error.message.replace(self.endpoint.model, "")) is not None

    def read_reply(self) -> ReadReply:
        """Convert the whole reply; raise `RemoteProtocolError` if it is not valid."""
        read = read_reply(self._sent_request, b"".join(self._chunks), self._limits)
        self._whole_reply = read.reply
        self.converted.report.extend(read.report.findings)
        return read

    def stream_error(self, error: ApiError) -> ProviderError:
        """Return the error for a failure that the provider sent within a stream."""
        return provider_errors.api_error(self.endpoint, error)

    def protocol_error(self, error: RemoteProtocolError) -> ProviderError:
        """Return the error for a reply that is not valid, or an error body with the status of a reply."""
        if error.kind is None:
            return provider_errors.invalid_reply_error(self.endpoint, str(error))
        api_error = ApiError(error.status or 0, error.message, kind=error.kind, code=error.code)
        return provider_errors.api_error(self.endpoint, api_error)

    @property
    def reply(self) -> Reply | None:
        """The reply, once it has ended; that of a failed stream has the finish `error`."""
        return self._whole_reply if self.stream is None else self.stream.reply

    @property
    def calls(self) -> list[tuple[ToolCall, str]]:
        """The tool calls of the reply so far, with the ids that the caller gets."""
        if self.sealer is not None:
            return list(self.sealer.calls)
        calls = self.reply.calls if self.reply is not None else ()
        return [(call, call.raw_id or call.id) for call in calls]

    def find_billed_usage(self) -> Usage | None:
        """Return the usage that the provider bills: as reported, else an estimate of what it read and wrote.

        None if it bills nothing: it was not reached, or answered with an error. A stream that is open is ended.
        """
        if not self.is_sent or self.failure in _UNREACHED or self._status not in (0, _HTTP_OK):
            return None
        is_open = self.stream is not None and self.stream.reply is None
        if self.stream is not None and is_open:
            self.stream.fail("the request was cancelled")
        reply, reported = self.reply, self.usage or Usage()
        if reply is not None and reply.finish != "error" and reported.input:
            return reported
        if reply is not None and reply.finish == "error" and not (is_open or reply.blocks or reported.input):
            return None
        written = ceil(estimate_message(Message("ai", reply.blocks))) if reply is not None and reply.blocks else 0
        return replace(
            reported, input=reported.input or estimate_input(self.data), output=max(reported.output, written)
        )

    @property
    def usage(self) -> Usage | None:
        if self.reply is not None:
            return self.reply.usage
        return self.stream.usage if self.stream is not None else None


def bind_endpoint(endpoint: Endpoint) -> EndpointBinding:
    """Return what the reasoning of an endpoint is bound to."""
    return EndpointBinding(
        WIRES[endpoint.api].provider, endpoint.base_url, fingerprint_key(endpoint.key), endpoint.model
    )

"""`ReplyRelay`: a caller's request for a reply, sent to the targets of its route.

Until the first content of a reply, a failed request is sent again, or to the next target of the route. The caller does
not notice it, because the start of a stream is held back until then. Later, a failure ends the caller's stream with an
error that clients retry.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from segue.bridge import aws, provider_errors, stored_responses
from segue.bridge.actions import Action, Authorize, Finish, Respond, ResponseHead, Save, Send, Wait, Write
from segue.bridge.attempt import Attempt, bind_endpoint
from segue.bridge.caller import Caller, JsonArray, caller_error, keep_alive, stream_headers
from segue.bridge.envelopes import entry_key, open_envelope, seal
from segue.bridge.lookups import response_key
from segue.bridge.provider_errors import TransportError
from segue.bridge.reasoning import ReasoningRestorer, ReplySealer, digest_calls, first_call_id
from segue.bridge.relay import Relay, Setup
from segue.bridge.routes import Route
from segue.bridge.stored_responses import ResponseCapture
from segue.canonical.blocks import Message, ToolCall
from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Finish as FinishReason
from segue.canonical.request import Usage
from segue.errors import ProviderError, RemoteProtocolError
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap

_MAX_STORED_SIZE = 1 << 30
_CAUSE_STATUSES = {"timeout": 504, "network": 502, "broken": 502, "key": 401}
_FIRST_DELAY, _MAX_DELAY = 0.5, 20.0
_ENVELOPE_BYTES = ENVELOPE_PREFIX.encode()
# One of these is in every body with tool calls.
_CALL_KEYS = (
    b'"tool_calls"',
    b'"tool_use"',
    b'"function_call"',
    b'"functionCall"',
    b'"toolUse"',
    b'"custom_tool_call"',
)


class ReplyRelay(Relay):
    """An exchange for one reply. `client` identifies the caller, whose stored entries it shares."""

    def __init__(self, setup: Setup, caller: Caller, route: Route, client: str) -> None:
        super().__init__(caller.wire)
        self.route = self._route = route
        self.model = caller.model
        self._setup = setup
        self._caller = caller
        self._client = client
        self._body = caller.body
        self._attempt: Attempt | None = None
        self._target = 0
        self._failures = 0
        self._sends_reasoning = True
        self._entries: Mapping[str, bytes] = {}
        self._held: list[bytes] = []
        self._has_head = False
        self._array: JsonArray | None = None
        self._salt = setup.random(12).hex()
        is_stored = setup.has_store and stored_responses.is_stored(caller)
        self._capture = ResponseCapture() if is_stored else None
        self.actions = self.guard(self._start)

    @property
    def report(self) -> Report | None:
        return self._attempt.converted.report if self._attempt is not None else None

    @property
    def usage(self) -> Usage | None:
        return self._attempt.usage if self._attempt is not None else None

    @property
    def finish(self) -> FinishReason | None:
        reply = self._attempt.reply if self._attempt is not None else None
        return reply.finish if reply is not None else None

    @property
    def calls(self) -> list[tuple[ToolCall, str]]:
        return [] if self._attempt is None else self._attempt.calls

    @property
    def target(self) -> str | None:
        return self._attempt.endpoint.name if self._attempt is not None else None

    def keep_alive(self) -> list[Action]:
        data = b"" if self.is_done or not self._caller.stream else keep_alive(self._caller.surface)
        return [*self._head(), Write(data)] if data else []

    # ------------------------------------------------------------------------------------------------------ the request

    def _start(self) -> list[Action]:
        """Replace a reference to an earlier response by its items, where the provider does not hold them."""
        reference = stored_responses.find_reference(self._caller)
        is_own = self._route.targets[0].api == self.wire.name
        if reference is None:
            return self._load_reasoning()
        if reference.key is None or not self._setup.has_store:
            return self._load_reasoning() if is_own else self.respond_error(reference.error)
        key = response_key(self._setup, self._client, reference.key)

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            stored = found.get(key)
            if stored is not None:
                self._body = stored_responses.expand(self._caller, stored)
            elif not is_own:
                return self.respond_error(reference.error)
            return self._load_reasoning()

        return self.load([key], proceed)

    def _load_reasoning(self) -> list[Action]:
        """Load the entries with the reasoning of earlier replies, if there can be some."""
        may_have_calls = any(key in self._body for key in _CALL_KEYS)
        if not (self._route.envelopes and self._setup.has_store and may_have_calls):
            return self.send()
        request = self.wire.parse_request(parse_json_object(self._body)[0])
        keys = [
            self._entry_key(call_id, digest)
            for message, digest in zip(request.messages, digest_calls(request.messages), strict=True)
            if (call_id := first_call_id(message)) is not None
        ]

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            self._entries = found
            return self.send()

        return self.load(keys, proceed) if keys else self.send()

    def send(self) -> list[Action]:
        """Convert the request for the current target, and send it."""
        endpoint = self._route.targets[self._target]
        if endpoint.lacks_key and not self._route.pass_credentials:
            return self._end_attempt(provider_errors.missing_key_error(endpoint))
        self._attempt = Attempt(
            self._caller,
            self._body,
            self._route,
            endpoint,
            restorer=self._make_restorer(),
            salt=self._salt,
            client=self._client,
            reasoning=self._sends_reasoning,
        )
        if not self._sends_reasoning:
            self._attempt.converted.report.add(
                "reasoning", "request sent again without reasoning: the provider rejected it", level="changed"
            )
        signer = endpoint.signer
        if signer is None or isinstance(signer, aws.Credentials):
            return self.authorize(signer)
        return [Authorize(signer)]

    def authorize(self, credentials: aws.Credentials | None) -> list[Action]:
        assert self._attempt is not None
        self._held = []
        return [Send(self._attempt.build_request(now=self._setup.now(), credentials=credentials))]

    def _make_restorer(self) -> ReasoningRestorer | None:
        if not self._route.envelopes or not (self._entries or _ENVELOPE_BYTES in self._body):
            return None
        setup, binding = self._setup, bind_endpoint(self._route.targets[self._target])

        def find_entry(call_id: str, digest: str) -> str | None:
            entry = self._entries.get(self._entry_key(call_id, digest))
            return None if entry is None else entry.decode()

        return ReasoningRestorer(
            self.wire.reasoning_place,
            lambda text: open_envelope(text, binding, setup.keys, setup.now().timestamp(), setup.max_age),
            find_entry,
        )

    # ----------------------------------------------------------------------------------------------------- the response

    def receive_head(self, head: ResponseHead) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        attempt.receive_head(head.status, head.headers, self._make_sealer(attempt), self._setup.limits)
        error = attempt.check_encoding()
        return [] if error is None else self._end_attempt(error)

    def _make_sealer(self, attempt: Attempt) -> ReplySealer | None:
        """Return the sealer for the reasoning of the reply; None where the caller's API has it already."""
        caller, setup = self.wire, self._setup
        if not self._route.envelopes or caller.name == attempt.endpoint.api:
            return None
        binding, now = bind_endpoint(attempt.endpoint), setup.now().timestamp()
        return ReplySealer(
            caller,
            attempt.endpoint.model,
            lambda blocks: seal(blocks, binding, setup.keys, now),
            prefix=attempt.converted.digest_prefix(),
        )

    def receive(self, data: bytes) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        try:
            rendered = attempt.receive(data)
        except RemoteProtocolError as error:
            return self._end_attempt(attempt.protocol_error(error))
        stream = attempt.stream
        if stream is None:
            return []
        if stream.failure is not None and not stream.has_content:
            return self._end_attempt(attempt.stream_error(stream.failure))
        self._hold(rendered)
        return self._write_held() if stream.has_content else []

    def _hold(self, rendered: bytes) -> None:
        if self._capture is not None:
            self._capture.feed(rendered)
        self._held.append(rendered)

    def _write_held(self) -> list[Action]:
        data, self._held = b"".join(self._held), []
        if not data:
            return []
        return [*self._head(), Write(self._frame(data))]

    def _frame(self, data: bytes) -> bytes:
        return data if self._array is None else self._array.feed(data)

    def _head(self) -> list[Action]:
        if self._has_head:
            return []
        self._has_head = True
        surface = self._caller.surface
        self._array = JsonArray() if surface.json_array else None
        return [Respond(200, stream_headers(surface))]

    def receive_end(self) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        error = attempt.find_response_error(self._setup.now())
        if error is not None:
            return self._end_attempt(error)
        return self._close_whole(attempt) if attempt.stream is None else self._close_stream(attempt)

    def _close_whole(self, attempt: Attempt) -> list[Action]:
        try:
            read = attempt.read_reply()
        except RemoteProtocolError as error:
            return self._end_attempt(attempt.protocol_error(error))
        response = Raw(encode_json(read.body)) if self._capture is not None else None
        return [*self._save(attempt, response), *self.respond_json(read.body)]

    def _close_stream(self, attempt: Attempt) -> list[Action]:
        stream = attempt.stream
        assert stream is not None
        had_content = stream.has_content
        rendered = attempt.close_stream()
        if stream.failure is not None and not had_content:
            return self._end_attempt(attempt.stream_error(stream.failure))
        if stream.failure is not None:
            self.error = attempt.stream_error(stream.failure)
            return [*self._write_held(), *self._end_stream(rendered)]
        self._hold(rendered)
        response = self._capture.response if self._capture is not None else None
        return [*self._save(attempt, response), *self._write_held(), *self._end_stream(b"")]

    def _end_stream(self, rendered: bytes) -> list[Action]:
        """End the caller's stream. An error is written on its own, because some clients detect it only so."""
        self.is_done = True
        writes: list[Action] = [*self._head()]
        if self._array is not None:
            rendered = (self._array.feed(rendered) if rendered else b"") + self._array.close()
        if rendered:
            writes.append(Write(rendered))
        return [*writes, Finish()]

    def receive_failure(self, error: TransportError) -> list[Action]:
        if self._attempt is None:
            return []
        return self._end_attempt(provider_errors.connection_error(self._attempt.endpoint, error))

    # ----------------------------------------------------------------------------------------------------------- errors

    def _end_attempt(self, error: ProviderError) -> list[Action]:
        """Retry, use the next target, or pass the error on to the caller."""
        self.error = error
        attempt, route = self._attempt, self._route
        stream = attempt.stream if attempt is not None else None
        if stream is not None and stream.has_content:
            return [*self._write_held(), *self._end_stream(stream.fail(error.message))]
        self._held = []
        if attempt is not None and attempt.names_reasoning(error):
            self._sends_reasoning = False
            return self.send()
        self._failures += 1
        if error.retryable and self._failures < route.attempts:
            delay = min(_MAX_DELAY, _FIRST_DELAY * 2 ** (self._failures - 1))
            return [Wait(delay if error.retry_after is None else min(error.retry_after, _MAX_DELAY))]
        if self._target + 1 < len(route.targets):
            self._target, self._failures, self._sends_reasoning = self._target + 1, 0, True
            return self.send()
        status = error.status or _CAUSE_STATUSES.get(error.cause, 502)
        api_error = caller_error(ApiError(status, error.message), self.wire.base_api)
        return self.respond_error(api_error, retry_after=error.retry_after)

    def respond_error(self, error: ApiError, *, retry_after: float | None = None) -> list[Action]:
        if not self._has_head:
            return super().respond_error(error, retry_after=retry_after)
        return self._end_stream(self._render_stream_error(error))

    def _render_stream_error(self, error: ApiError) -> bytes:
        """Render an error in a stream that has begun, but has no reply yet."""
        wire = self.wire
        context = RenderContext(
            IdMap(wire.id_scheme(parse_model(None)), provider=wire.provider), NameMap(ANY_NAME), Report()
        )
        return wire.stream_renderer(context, self._caller.model, None).render_failure(error)

    # -------------------------------------------------------------------------------------------------------- the store

    def _save(self, attempt: Attempt, response: Raw | None) -> list[Action]:
        """Return the action that saves the reasoning of the reply, and the response where callers may refer to it."""
        if not self._setup.has_store:
            return []
        entries = {**self._reasoning_entry(attempt), **self._response_entry(response)}
        return [Save(entries)] if entries else []

    def _reasoning_entry(self, attempt: Attempt) -> dict[str, bytes]:
        sealer = attempt.sealer
        if sealer is None or not sealer.blocks or not sealer.calls:
            return {}
        setup = self._setup
        entry = seal(
            sealer.blocks,
            bind_endpoint(attempt.endpoint),
            setup.keys,
            setup.now().timestamp(),
            max_size=_MAX_STORED_SIZE,
        )
        if entry is None:
            return {}
        call, given_id = sealer.calls[0]
        messages = attempt.converted.caller_messages
        digest = digest_calls([*messages, Message("ai", (call,))])[-1]
        return {self._entry_key(given_id, digest): entry.encode()}

    def _response_entry(self, response: Raw | None) -> dict[str, bytes]:
        if response is None:
            return {}
        key = response_key(self._setup, self._client, stored_responses.parse_id(response))
        return {key: stored_responses.encode(self._body, response)}

    def _entry_key(self, call_id: str, digest: str) -> str:
        return entry_key(self._setup.keys, self._client, self._route.name, call_id, digest)

"""`Relay`: one exchange between a caller and a provider, as a state machine without IO.

`Bridge.open` takes the caller's request and returns a relay. Its `actions`, and those that `feed`, `fail` and `close`
return, are carried out by a shell in their order.

Until the first content of a reply, a failed request is sent again or to the next target of the route, and the caller
notices nothing: the start of a stream is held back so long. After that, a failure ends the caller's stream with an error
that clients retry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from segue.bridge import aws, provider_errors, stored_responses
from segue.bridge.actions import (
    Action,
    Authorize,
    Delete,
    Elapsed,
    Entries,
    Finish,
    Input,
    Load,
    Respond,
    ResponseHead,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.attempt import Attempt, bind_endpoint
from segue.bridge.caller import (
    Caller,
    JsonArray,
    caller_error,
    keep_alive,
    parse_caller,
    respond_error,
    respond_json,
    stream_headers,
)
from segue.bridge.envelopes import EnvelopeKeys, entry_key, open_envelope, seal
from segue.bridge.http_requests import count_request, has_counter
from segue.bridge.listings import (
    count_body,
    estimate_tokens,
    parse_token_count,
    render_model,
    render_models,
    render_token_count,
)
from segue.bridge.provider_errors import TransportError
from segue.bridge.reasoning import ReasoningRestorer, ReplySealer, digest_calls, first_call_id
from segue.bridge.routes import Route, RouteQuery, Router
from segue.bridge.surfaces import Surface, find_surface
from segue.canonical.blocks import Message, ToolCall
from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.canonical.request import Finish as FinishReason
from segue.canonical.request import Usage
from segue.errors import InputError, ProviderError, RemoteProtocolError, SegueError
from segue.render.report import Report
from segue.wire.base import ApiError, Wire
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits
from segue.wire.registry import WIRES

_DAY = 86_400.0
_MAX_STORED_SIZE = 1 << 30
_CAUSE_STATUSES = {"timeout": 504, "network": 502, "broken": 502, "key": 401}
_FIRST_DELAY, _MAX_DELAY = 0.5, 20.0
_ENVELOPE_BYTES = ENVELOPE_PREFIX.encode()
# One of these is in every body with tool calls.
_CALL_KEYS = (b'"tool_calls"', b'"tool_use"', b'"function_call"', b'"functionCall"', b'"toolUse"', b'"custom_tool_call"')


class Bridge(Struct, frozen=True):
    """Opens relays. Clock and randomness are passed in: `now` returns the time in UTC, `random` a number of bytes.

    `has_store` is whether the shell carries out `Load` and `Save`. `max_age` is that of envelopes, in seconds.
    """

    router: Router
    keys: EnvelopeKeys
    now: Callable[[], datetime]
    random: Callable[[int], bytes]
    has_store: bool = True
    max_age: float = 30 * _DAY
    limits: ReplyLimits = DEFAULT_LIMITS

    def open(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, client: str = ""
    ) -> Relay:
        """Return the relay of a caller's request; `client` identifies the caller, whose stored entries it shares.

        A path that segue does not translate gets an error with the status 404.
        """
        surface = find_surface(method, path, headers)
        if surface is None:
            message = f"segue does not translate {method} {path.partition('?')[0]}"
            actions = respond_error(WIRES["openai-chat"], ApiError(404, message, code="not_found"))
            return Relay(self, None, client, actions)
        try:
            caller = parse_caller(surface, headers, body)
        except InputError as error:
            wire = WIRES[surface.api]
            return Relay(self, None, client, respond_error(wire, _input_error(error)))
        return Relay(self, caller, client)


class Relay:
    """One exchange. `actions` are the first ones to carry out.

    `report`, `usage`, `finish`, `calls`, `target` and `error` can be read at any time, also after a failure.
    """

    def __init__(self, bridge: Bridge, caller: Caller | None, client: str, actions: list[Action] | None = None) -> None:
        self.error: ProviderError | None = None
        """The last failure of a target."""
        self.route: Route | None = None
        self.is_done = actions is not None
        self._bridge = bridge
        self._client = client
        self._attempt: Attempt | None = None
        self._counting = False
        self._target = 0
        self._failures = 0
        self._retried_without_reasoning = False
        self._entries: Mapping[str, bytes] = {}
        self._held: list[bytes] = []
        self._has_head = False
        self._array: JsonArray | None = None
        self._salt = bridge.random(12).hex()
        self._on_entries: Callable[[Mapping[str, bytes]], list[Action]] | None = None
        self._report: Report | None = None
        if caller is not None:
            self._caller = caller
            self._body = caller.body
            self.actions = self._guard(self._start)
        else:
            self.actions = actions or []

    # ------------------------------------------------------------------------------------------------------ the results

    @property
    def report(self) -> Report | None:
        """The report of the last conversion."""
        return self._attempt.converted.report if self._attempt is not None else self._report

    @property
    def usage(self) -> Usage | None:
        return self._attempt.usage if self._attempt is not None else None

    @property
    def finish(self) -> FinishReason | None:
        reply = self._attempt.reply if self._attempt is not None else None
        return reply.finish if reply is not None else None

    @property
    def calls(self) -> list[tuple[ToolCall, str]]:
        """The tool calls of the reply so far, with the ids that the caller gets."""
        sealer = self._attempt.sealer if self._attempt is not None else None
        return list(sealer.calls) if sealer is not None else []

    @property
    def target(self) -> str | None:
        """The `provider/model` of the last attempt."""
        return self._attempt.endpoint.name if self._attempt is not None else None

    # ------------------------------------------------------------------------------------------------------- the inputs

    def feed(self, data: Input) -> list[Action]:
        """Take the next input, and return the actions that follow from it."""
        if self.is_done:
            return []
        return self._guard(lambda: self._feed(data))

    def fail(self, error: TransportError | str) -> list[Action]:
        """Take the failure of the connection to the provider, or of a timeout."""
        if self.is_done or self._attempt is None:
            return []
        if isinstance(error, str):
            error = TransportError("lost", error)
        failure = provider_errors.connection_error(self._attempt.endpoint, error)
        return self._guard(lambda: self._end_attempt(failure))

    def close(self) -> list[Action]:
        """Take the end of the provider's response."""
        if self.is_done or self._attempt is None:
            return []
        return self._guard(self._close)

    def keep_alive(self) -> list[Action]:
        """Return bytes that keep the caller's stream open while the provider is silent."""
        data = b"" if self.is_done or not self._caller.stream else keep_alive(self._caller.surface)
        return [*self._head(), Write(data)] if data else []

    def _guard(self, step: Callable[[], list[Action]]) -> list[Action]:
        """Run a step; errors of the caller's request become the response."""
        try:
            return step()
        except InputError as error:
            return self._respond_error(_input_error(error))
        except SegueError as error:
            return self._respond_error(ApiError(500, str(error), "api_error"))

    def _feed(self, data: Input) -> list[Action]:
        match data:
            case bytes():
                return self._receive(data)
            case ResponseHead():
                return self._receive_head(data)
            case Entries():
                proceed, self._on_entries = self._on_entries, None
                return proceed(data.found) if proceed is not None else []
            case Elapsed():
                return self._send()
            case aws.Credentials():
                return self._send_attempt(data)

    # ------------------------------------------------------------------------------------------------------ the request

    def _start(self) -> list[Action]:
        caller, router = self._caller, self._bridge.router
        operation = caller.surface.operation
        if operation == "models":
            return self._respond_json(render_models(caller.surface.api, router.models()))
        if operation == "model":
            return self._respond_json(render_model(caller.surface.api, router.models(), caller.model or ""))
        if operation in ("retrieve", "items", "delete"):
            return self._serve_stored()
        self.route = route = router.find(
            RouteQuery(caller.surface, caller.model, caller.headers, len(caller.body))
        )
        if not route.targets:
            raise InputError(f"the route {route.name} has no targets", path="model")
        if route.caller is not None:
            self._caller = caller = _with_wire(caller, WIRES[route.caller])
        if operation == "count":
            return self._count(route)
        return self._continue_stored(route)

    def _continue_stored(self, route: Route) -> list[Action]:
        """Replace a reference to an earlier response by its items, where the provider does not hold them."""
        reference = stored_responses.find_reference(self._caller)
        is_own = WIRES[route.targets[0].api].name == self._caller.wire.name
        if reference is None:
            return self._load_reasoning(route)
        if reference.key is None or not self._bridge.has_store:
            return self._load_reasoning(route) if is_own else self._respond_error(reference.error)
        key = self._response_key(reference.key)

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            stored = found.get(key)
            if stored is not None:
                self._body = stored_responses.expand(self._caller, stored)
            elif not is_own:
                return self._respond_error(reference.error)
            return self._load_reasoning(route)

        return self._load([key], proceed)

    def _load_reasoning(self, route: Route) -> list[Action]:
        """Load the entries with the reasoning of earlier replies, if there can be some."""
        may_have_calls = any(key in self._body for key in _CALL_KEYS)
        if not (route.envelopes and self._bridge.has_store and may_have_calls):
            return self._send()
        request = self._caller.wire.parse_request(_decode(self._body))
        keys = [
            self._entry_key(call_id, digest)
            for message, digest in zip(request.messages, digest_calls(request.messages), strict=True)
            if (call_id := first_call_id(message)) is not None
        ]

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            self._entries = found
            return self._send()

        return self._load(keys, proceed) if keys else self._send()

    def _load(self, keys: list[str], proceed: Callable[[Mapping[str, bytes]], list[Action]]) -> list[Action]:
        self._on_entries = proceed
        return [Load(tuple(dict.fromkeys(keys)))]

    def _send(self) -> list[Action]:
        """Convert the request for the current target, and send it."""
        assert self.route is not None
        endpoint = self.route.targets[self._target]
        if endpoint.lacks_key and not self.route.pass_credentials:
            return self._end_attempt(provider_errors.missing_key_error(endpoint))
        report = self.report
        self._attempt = Attempt(
            self._caller,
            self._body,
            self.route,
            endpoint,
            restorer=self._make_restorer(),
            salt=self._salt,
            client=self._client,
            reasoning=not self._retried_without_reasoning,
        )
        if self._retried_without_reasoning and report is not None:
            self._attempt.converted.report.add(
                "reasoning", "request sent again without reasoning: the provider rejected it", level="changed"
            )
        signer = endpoint.signer
        if signer is None or isinstance(signer, aws.Credentials):
            return self._send_attempt(signer)
        return [Authorize(signer)]

    def _send_attempt(self, credentials: aws.Credentials | None) -> list[Action]:
        assert self._attempt is not None
        self._held = []
        return [Send(self._attempt.build_request(now=self._bridge.now(), credentials=credentials))]

    def _make_restorer(self) -> ReasoningRestorer | None:
        assert self.route is not None
        if not self.route.envelopes or not (self._entries or _ENVELOPE_BYTES in self._body):
            return None
        bridge, binding = self._bridge, bind_endpoint(self.route.targets[self._target])

        def find_entry(call_id: str, digest: str) -> str | None:
            entry = self._entries.get(self._entry_key(call_id, digest))
            return None if entry is None else entry.decode()

        return ReasoningRestorer(
            self._caller.wire.reasoning_place,
            lambda text: open_envelope(text, binding, bridge.keys, bridge.now().timestamp(), bridge.max_age),
            find_entry,
        )

    # ----------------------------------------------------------------------------------------------------- the response

    def _receive_head(self, head: ResponseHead) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        attempt.receive_head(head.status, head.headers, self._make_sealer(attempt), self._bridge.limits)
        error = attempt.check_encoding()
        return [] if error is None else self._end_attempt(error)

    def _make_sealer(self, attempt: Attempt) -> ReplySealer | None:
        """Return the sealer for the reasoning of the reply; None where the caller's API has it already."""
        assert self.route is not None
        caller, bridge = self._caller.wire, self._bridge
        if not self.route.envelopes or self._counting or caller.provider == WIRES[attempt.endpoint.api].provider:
            return None
        binding, now = bind_endpoint(attempt.endpoint), bridge.now().timestamp()
        return ReplySealer(
            caller,
            attempt.endpoint.model,
            lambda blocks: seal(blocks, binding, bridge.keys, now),
            prefix=attempt.converted.digest_prefix(),
        )

    def _receive(self, data: bytes) -> list[Action]:
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
        if rendered:
            self._held.append(rendered)
        return self._write_held() if stream.has_content else []

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

    def _close(self) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        error = attempt.find_response_error(self._bridge.now())
        if error is not None:
            return self._end_attempt(error)
        if self._counting:
            return self._respond_json(
                render_token_count(self._caller.surface.api, parse_token_count(attempt.endpoint.api, attempt.body))
            )
        return self._close_whole(attempt) if attempt.stream is None else self._close_stream(attempt)

    def _close_whole(self, attempt: Attempt) -> list[Action]:
        try:
            read = attempt.read_reply()
        except RemoteProtocolError as error:
            return self._end_attempt(attempt.protocol_error(error))
        return [*self._save(attempt, read.body), *self._respond_json(read.body)]

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
        body = stored_responses.render_reply_body(self._caller, attempt)
        self._held.append(rendered)
        return [*self._save(attempt, body), *self._write_held(), *self._end_stream(b"")]

    def _end_stream(self, rendered: bytes) -> list[Action]:
        """End the caller's stream. An error is written on its own, because some clients detect it only so."""
        self.is_done = True
        writes: list[Action] = [*self._head()]
        if self._array is not None:
            rendered = (self._array.feed(rendered) if rendered else b"") + self._array.close()
        if rendered:
            writes.append(Write(rendered))
        return [*writes, Finish()]

    # ----------------------------------------------------------------------------------------------------------- errors

    def _end_attempt(self, error: ProviderError) -> list[Action]:
        """Retry, use the next target, or pass the error on to the caller."""
        self.error = error
        attempt, route = self._attempt, self.route
        assert route is not None
        stream = attempt.stream if attempt is not None else None
        if stream is not None and stream.has_content:
            return [*self._write_held(), *self._end_stream(stream.fail(error.message))]
        self._held = []
        if attempt is not None and not self._retried_without_reasoning and attempt.names_reasoning(error):
            self._retried_without_reasoning = True
            return self._send()
        self._failures += 1
        if error.retryable and self._failures < route.attempts:
            delay = min(_MAX_DELAY, _FIRST_DELAY * 2 ** (self._failures - 1))
            return [Wait(delay if error.retry_after is None else min(error.retry_after, _MAX_DELAY))]
        if self._target + 1 < len(route.targets):
            self._target, self._failures, self._retried_without_reasoning = self._target + 1, 0, False
            return self._send()
        status = error.status or _CAUSE_STATUSES.get(error.cause, 502)
        api_error = caller_error(ApiError(status, error.message), self._caller.wire.base_api)
        return self._respond_error(api_error, retry_after=error.retry_after)

    def _respond_error(self, error: ApiError, *, retry_after: float | None = None) -> list[Action]:
        self.is_done = True
        wire = self._caller.wire
        if not self._has_head:
            return respond_error(wire, error, retry_after=retry_after)
        self.is_done = False
        return self._end_stream(_render_stream_error(self._attempt, error))

    def _respond_json(self, body: Mapping[str, object]) -> list[Action]:
        self.is_done = True
        return respond_json(body)

    # -------------------------------------------------------------------------------------------------------- the store

    def _save(self, attempt: Attempt, body: Mapping[str, object] | None) -> list[Action]:
        """Return the action that saves the reasoning of the reply, and the response where callers may refer to it."""
        if not self._bridge.has_store:
            return []
        entries = {**self._reasoning_entry(attempt), **self._response_entry(body)}
        return [Save(entries)] if entries else []

    def _reasoning_entry(self, attempt: Attempt) -> dict[str, bytes]:
        sealer = attempt.sealer
        if sealer is None or not sealer.blocks or not sealer.calls:
            return {}
        bridge = self._bridge
        entry = seal(
            sealer.blocks,
            bind_endpoint(attempt.endpoint),
            bridge.keys,
            bridge.now().timestamp(),
            max_size=_MAX_STORED_SIZE,
        )
        if entry is None:
            return {}
        call, given_id = sealer.calls[0]
        messages = attempt.converted.caller_messages
        digest = digest_calls([*messages, Message("ai", (call,))])[-1]
        return {self._entry_key(given_id, digest): entry.encode()}

    def _response_entry(self, body: Mapping[str, object] | None) -> dict[str, bytes]:
        if body is None or not stored_responses.is_stored(self._caller):
            return {}
        return {self._response_key(str(body["id"])): stored_responses.encode(self._caller, self._body, body)}

    def _entry_key(self, call_id: str, digest: str) -> str:
        assert self.route is not None
        return entry_key(self._bridge.keys, self._client, self.route.name, call_id, digest)

    def _response_key(self, response_id: str) -> str:
        return entry_key(self._bridge.keys, self._client, "responses", response_id, "")

    def _serve_stored(self) -> list[Action]:
        surface = self._caller.surface
        key = self._response_key(surface.resource or "")

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            stored = found.get(key)
            if stored is None:
                return self._respond_error(stored_responses.not_found(surface.resource or ""))
            response = self._respond_json(stored_responses.serve(surface, stored))
            return [Delete((key,)), *response] if surface.operation == "delete" else response

        return self._load([key], proceed) if self._bridge.has_store else proceed({})

    # --------------------------------------------------------------------------------------------------------- counting

    def _count(self, route: Route) -> list[Action]:
        """Count the tokens of a request: with the provider's counter, or by an estimate."""
        endpoint = route.targets[0]
        body = count_body(self._caller.surface.api, self._body)
        if route.counts == "estimate" or not has_counter(endpoint.api) or endpoint.signer is not None:
            tokens = estimate_tokens(self._caller.wire.parse_request(_decode(body)))
            return self._respond_json(render_token_count(self._caller.surface.api, tokens))
        raise NotImplementedError

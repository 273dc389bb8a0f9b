"""`ReplyRelay`: a caller's request for a reply, sent to the targets of its route.

Until the first content of a reply, a failed request is sent again, or to the next target of the route. The caller does
not notice it, because the start of a stream is held back until then. Later, a failure ends the caller's stream with an
error that clients retry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from msgspec import Raw
from msgspec.structs import replace

from segue._convert import DecodedBody
from segue._stream import ReplyStream
from segue.bridge import aws, failover, provider_errors, stored_responses
from segue.bridge.actions import (
    Action,
    Authorize,
    EndExchange,
    EndResponse,
    Respond,
    ResponseHead,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.attempt import Attempt, bind_endpoint
from segue.bridge.caller import Caller, JsonArrayWriter, keep_alive, stream_headers
from segue.bridge.caller_key import missing_caller_key_error, use_caller_key
from segue.bridge.digests import digest_opening
from segue.bridge.envelopes import EntryKind, entry_keys, open_envelope, seal
from segue.bridge.failover import TargetSequence
from segue.bridge.histories import History
from segue.bridge.provider_errors import TransportError
from segue.bridge.providers import Endpoint
from segue.bridge.reasoning import ReasoningRestorer, ReplySealer
from segue.bridge.relay import Relay, RelaySettings
from segue.bridge.routes import Route
from segue.bridge.stored_responses import StoredHistory
from segue.canonical.blocks import Message, ToolCall
from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Finish, Usage
from segue.errors import ProviderError, RemoteProtocolError
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, RenderContext
from segue.wire.error_forms import classify_error
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap

_MAX_STORED_SIZE = 1 << 30
_FIRST_DELAY, _MAX_DELAY = 0.5, 20.0
_ENVELOPE_BYTES = ENVELOPE_PREFIX.encode()
# One of these is in every body with tool calls, usually that of the caller's own API.
_CALL_KEYS = {
    "openai-chat": b'"tool_calls"',
    "anthropic": b'"tool_use"',
    "openai-responses": b'"function_call"',
    "gemini": b'"functionCall"',
    "bedrock": b'"toolUse"',
}
_FREE_TEXT_CALL_KEY = b'"custom_tool_call"'


class ReplyRelay(Relay):
    """An exchange for one reply. `client` identifies the caller, whose stored entries it shares."""

    def __init__(self, settings: RelaySettings, caller: Caller, route: Route, client: str) -> None:
        super().__init__(caller.wire)
        self.route = self._route = route
        self.model = caller.model
        self._settings = settings
        self._caller = caller
        self._client = client
        self._body = self._given = caller.body
        """The body for the current target, and the caller's, with what it refers to."""
        self._attempt: Attempt | None = None
        self._targets: tuple[Endpoint, ...] = route.targets
        if route.pass_credentials:
            keyed = (use_caller_key(target, caller) for target in route.targets)
            self._targets = tuple(target for target in keyed if target is not None)
        self.former_spending: list[tuple[Endpoint, Usage]] = []
        """The usage that was billed for earlier attempts."""
        self._failures = 0
        self._sends_reasoning = True
        self._history: History | None = None
        """The conversation, if reasoning may be stored for it."""
        self._restorer: ReasoningRestorer | None = None
        self._decoded: DecodedBody | None = None
        self._held: list[bytes] = []
        self._has_head = False
        self._has_content = False
        """Whether the caller has content of a reply: no other target can take over then."""
        self._array: JsonArrayWriter | None = None
        self._salt = settings.random(12).hex()
        is_stored = settings.has_store and stored_responses.is_stored(caller)
        self._capture = stored_responses.open_capture(caller) if is_stored else None
        self._stored: StoredHistory | None = None
        """The history that the body refers to."""
        self.actions = self.guard(self._start)

    @property
    def report(self) -> Report | None:
        return self._attempt.converted.report if self._attempt is not None else None

    @property
    def usage(self) -> Usage | None:
        return self._attempt.usage if self._attempt is not None else None

    @property
    def spending(self) -> list[tuple[Endpoint, Usage]]:
        return [*self.former_spending, *_find_spending(self._attempt)]

    @property
    def endpoint(self) -> Endpoint | None:
        """The endpoint of the last attempt."""
        return self._attempt.endpoint if self._attempt is not None else None

    @property
    def opening(self) -> str:
        """A digest of how the conversation begins, which all its requests have."""
        return self._opening

    @property
    def size(self) -> int:
        """The size of the caller's body in bytes, with what it refers to."""
        return len(self._given)

    @property
    def finish(self) -> Finish | None:
        reply = self._attempt.reply if self._attempt is not None else None
        return reply.finish if reply is not None else None

    @property
    def calls(self) -> list[tuple[ToolCall, str]]:
        return [] if self._attempt is None else self._attempt.calls

    @property
    def target(self) -> str | None:
        return self._attempt.endpoint.name if self._attempt is not None else None

    def keep_alive(self) -> list[Action]:
        data = b"" if self.is_done or not self._caller.stream else keep_alive(self._caller.api_path)
        return [*self._head(), Write(data)] if data else []

    def end(self) -> None:
        if "_selection" in vars(self):
            self._selection.release()

    @cached_property
    def _selection(self) -> TargetSequence:
        """The choice among the targets, which are known when the first request is sent."""
        if self._route.order is not None:
            self._targets = tuple(self._route.order(self._targets, self.opening, self.size))
            self.route = replace(self._route, targets=self._targets)
        return TargetSequence(self._targets, self._settings.pauses)

    # ------------------------------------------------------------------------------------------------------ the request

    def _start(self) -> list[Action]:
        """Replace a reference to stored history by its items."""
        if not self._targets:
            return self.respond_error(missing_caller_key_error(self._route.targets[0], self._caller))
        reference = stored_responses.find_reference(self._caller, has_store=self._settings.has_store)
        if isinstance(reference, ApiError):
            return self.respond_error(reference)
        if reference is None:
            return self._resolve_items()
        if not self._settings.has_store:
            return self._send_reference(reference.error, is_optional=reference.is_optional)
        keys = self._entry_keys(reference.kind, reference.id, "")

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            history = stored_responses.read_entry(reference, next((found[key] for key in keys if key in found), None))
            if history is reference.error:
                return self._send_reference(reference.error, is_optional=reference.is_optional)
            if isinstance(history, ApiError):
                return self.respond_error(history)
            self._stored = history
            self._body = self._given = stored_responses.expand(self._caller, history)
            return self._resolve_items()

        return proceed({}) if reference.is_start else self.load(list(keys), proceed)

    def _resolve_items(self) -> list[Action]:
        """Replace references to items of earlier responses by these, where they are stored here."""
        ids = stored_responses.find_item_references(self._caller, self._given)
        if not ids:
            return self.send()
        names = {name: item_id for item_id in ids for name in self._entry_keys("item", item_id, "")}

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            items = {item_id: found[name] for name, item_id in names.items() if name in found}
            self._body = self._given = stored_responses.resolve_items(self._given, items)
            unknown = [item_id for item_id in ids if item_id not in items]
            error = stored_responses.item_not_found(unknown[0]) if unknown else None
            return self.send() if error is None else self._send_reference(error)

        return self.load(list(names), proceed) if self._settings.has_store else proceed({})

    def _send_reference(self, error: ApiError, *, is_optional: bool = False) -> list[Action]:
        """Send a reference to the targets of the caller's own API, one of which may hold what it refers to.

        An optional one is sent only if all targets have that API: the others could not take the request over.
        """
        own = tuple(target for target in self._targets if target.api == self.wire.name)
        if not own or (is_optional and own != self._targets):
            return self.respond_error(error)
        self._targets = own
        # The reply continues a history that is not stored here, and so do the requests that refer to it.
        self._capture = None
        return self.send()

    def send(self) -> list[Action]:
        """Find what is stored of the conversation for the current target, if there can be something, and send it."""
        endpoint = self._selection.current
        self._history = None
        if endpoint.lacks_key:
            return self._end_attempt(provider_errors.missing_key_error(endpoint))
        return self._prepare()

    def _prepare(self) -> list[Action]:
        """Put into the body what the current target needs, and send it."""
        return self._restore_reasoning()

    def _restore_reasoning(self) -> list[Action]:
        """Find the reasoning of earlier replies, and send the request."""
        if not (self._route.envelopes and self._settings.has_store and self._may_have_calls()):
            return self._convert(self._find_restorer())
        history = self._settings.histories.find(
            self._history_key, self._conversation, self.wire, oldest=self._oldest_seal
        )
        if history is not None:
            return self._load_entries(history)

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            return self._load_entries(self._read_history()) if found else self._convert(self._find_restorer())

        return self.load(list(self._opening_keys), proceed)

    def _may_have_calls(self) -> bool:
        own = _CALL_KEYS.get(self.wire.base_api, _FREE_TEXT_CALL_KEY)
        return any(key in self._body for key in (own, *_CALL_KEYS.values(), _FREE_TEXT_CALL_KEY))

    @cached_property
    def _conversation(self) -> bytes:
        """The JSON of the conversation."""
        return bytes(self._caller.members_of(self._body).get(self.wire.conversation_key, b""))

    @cached_property
    def _opening(self) -> str:
        return digest_opening(self.wire, Raw(self._conversation))

    @property
    def _opening_keys(self) -> tuple[str, ...]:
        """The keys of the entry that marks a conversation with stored reasoning: most have none."""
        return self._entry_keys("opening", "", self._opening)

    @property
    def _history_key(self) -> Hashable:
        return self._client, self.wire.name, bind_endpoint(self._selection.current), self._opening

    @property
    def _oldest_seal(self) -> float:
        return self._settings.now().timestamp() - self._settings.max_age

    def _read_history(self) -> History:
        """Parse the whole body."""
        value, surrogates = parse_json_object(self._body)
        request = self.wire.parse_request(value)
        self._decoded = DecodedBody(value, surrogates, request)
        return History.read(self._conversation, self.wire, request.messages, self._make_restorer())

    def _load_entries(self, history: History) -> list[Action]:
        """Load the entries of the calls that are new in the conversation."""
        keys = {call: self._entry_keys("reasoning", *call) for call in history.calls}

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            def find_entry(call_id: str, digest: str) -> str | None:
                return next((found[key].decode() for key in keys[call_id, digest] if key in found), None)

            self._history = history.add_entries(find_entry)
            self._settings.histories.put(self._history_key, self._history)
            return self._convert(history.restorer)

        return self.load([key for some in keys.values() for key in some], proceed) if keys else proceed({})

    def _find_restorer(self) -> ReasoningRestorer | None:
        """Return what restores reasoning in envelopes, if the body has some."""
        if not self._route.envelopes or _ENVELOPE_BYTES not in self._body:
            return None
        key = self.wire.reasoning_place, bind_endpoint(self._selection.current)
        return self._settings.histories.find_restorer(key, self._make_restorer, oldest=self._oldest_seal)

    def _make_restorer(self) -> ReasoningRestorer:
        settings, binding = self._settings, bind_endpoint(self._selection.current)
        return ReasoningRestorer(
            self.wire.reasoning_place,
            lambda text: open_envelope(text, binding, settings.keys, settings.now().timestamp(), settings.max_age),
        )

    def _convert(self, restorer: ReasoningRestorer | None) -> list[Action]:
        """Convert the request for the current target, and send it."""
        self._restorer = restorer
        return self._send_attempt(self._open_attempt(self._selection.current, reasoning=self._sends_reasoning))

    def _open_attempt(self, endpoint: Endpoint, *, reasoning: bool) -> Attempt:
        decoded, self._decoded = self._decoded, None
        return Attempt(
            self._caller,
            self._body,
            self._route,
            endpoint,
            restorer=self._restorer,
            decoded=decoded,
            salt=self._salt,
            client=self._client,
            reasoning=reasoning,
        )

    def _send_attempt(self, attempt: Attempt) -> list[Action]:
        self.former_spending += _find_spending(self._attempt)
        self._attempt = attempt
        if not attempt.has_reasoning:
            attempt.converted.report.add(
                "reasoning", "request sent again without reasoning: the provider rejected it", level="changed"
            )
        if self._route.is_default:
            attempt.converted.report.add(
                "model", f"no route for this model: served by {attempt.endpoint.name}", subject=self.model, level="note"
            )
        signer = attempt.endpoint.signer
        if signer is None or isinstance(signer, aws.Credentials):
            return self.authorize(signer)
        return [Authorize(signer)]

    def authorize(self, credentials: aws.Credentials | None) -> list[Action]:
        assert self._attempt is not None
        self._held = []
        request = self._attempt.build_request(now=self._settings.now(), credentials=credentials)
        return [Send(request._replace(first_byte=self._first_byte))]

    @property
    def _first_byte(self) -> float | None:
        """The longest wait for the head of the response; None without a limit of its own."""
        return self._settings.first_byte if self._caller.stream and self._selection.has_successor else None

    # ----------------------------------------------------------------------------------------------------- the response

    def receive_head(self, head: ResponseHead) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        attempt.receive_head(head.status, head.headers, self._make_sealer(attempt), self._settings.limits)
        error = attempt.check_encoding()
        return [] if error is None else self._end_attempt(error)

    def _make_sealer(self, attempt: Attempt) -> ReplySealer | None:
        """Return the sealer for the reasoning of the reply; None where the caller's API has it already."""
        caller, settings = self.wire, self._settings
        if not self._route.envelopes or caller.name == attempt.endpoint.api:
            return None
        binding, now = bind_endpoint(attempt.endpoint), settings.now().timestamp()
        return ReplySealer(
            caller,
            attempt.endpoint.model,
            lambda blocks: seal(blocks, binding, settings.keys, now),
            attempt.converted.digest_prefix,
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
            return self.receive_end() if attempt.is_full else []
        self._hold(rendered)
        if stream.failure is not None:
            # The provider sent an error: the end of its response is not awaited.
            return self._close_stream(attempt, stream)
        if stream.is_complete:
            # Some providers keep the connection open.
            *actions, last = self._close_stream(attempt, stream)
            return [*actions, EndResponse() if isinstance(last, EndExchange) else last]
        return self._write_held() if stream.has_content else []

    def _hold(self, rendered: bytes) -> None:
        if self._capture is not None:
            self._capture.feed(rendered)
        self._held.append(rendered)

    def _write_held(self) -> list[Action]:
        data, self._held = b"".join(self._held), []
        if not data:
            return []
        if not self._has_content:
            self._has_content = True
            self._selection.succeed()
        return [*self._head(), Write(self._frame(data))]

    def _frame(self, data: bytes) -> bytes:
        return data if self._array is None else self._array.feed(data)

    def _head(self) -> list[Action]:
        if self._has_head:
            return []
        self._has_head = True
        api_path = self._caller.api_path
        self._array = JsonArrayWriter() if api_path.json_array else None
        return [Respond(200, stream_headers(api_path))]

    def receive_end(self) -> list[Action]:
        attempt = self._attempt
        assert attempt is not None
        error = attempt.find_response_error(self._settings.now())
        if error is not None:
            return self._end_attempt(error)
        return self._close_whole(attempt) if attempt.stream is None else self._close_stream(attempt, attempt.stream)

    def _close_whole(self, attempt: Attempt) -> list[Action]:
        try:
            read = attempt.read_reply()
        except RemoteProtocolError as error:
            return self._end_attempt(attempt.protocol_error(error))
        self._selection.succeed()
        response = Raw(encode_json(read.body)) if self._capture is not None else None
        return [*self._save(attempt, response), *self.respond_json(read.body)]

    def _close_stream(
        self, attempt: Attempt, stream: ReplyStream, failure: ProviderError | None = None
    ) -> list[Action]:
        """End the stream after the last bytes of the response; `failure` is that of the connection.

        A reply that is complete by then is valid, however the connection ended.
        """
        try:
            rendered = stream.close()
        except RemoteProtocolError as error:
            return self._end_attempt(failure or attempt.protocol_error(error))
        if stream.failure is not None:
            error = failure or attempt.stream_error(stream.failure)
            return self._end_failed_stream(rendered, error) if self._has_content else self._end_attempt(error)
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
        return [*writes, EndExchange()]

    def receive_failure(self, error: TransportError) -> list[Action]:
        attempt = self._attempt
        if attempt is None:
            return []
        attempt.failure = error.kind
        failure = provider_errors.connection_error(attempt.endpoint, error)
        return (
            self._end_attempt(failure)
            if attempt.stream is None
            else self._close_stream(attempt, attempt.stream, failure)
        )

    def receive_refusal(self, error: ApiError) -> list[Action]:
        if self._attempt is not None:
            self._attempt.is_sent = False
        return super().receive_refusal(error)

    # ----------------------------------------------------------------------------------------------------------- errors

    def _end_attempt(self, error: ProviderError) -> list[Action]:
        """Retry, use the next target, or pass the error on to the caller."""
        self.error = error
        attempt, selection = self._attempt, self._selection
        stream = attempt.stream if attempt is not None else None
        if stream is not None and self._has_content:
            return self._end_failed_stream(stream.fail(error.message), error)
        self._held = []
        if attempt is not None and attempt.names_reasoning(error):
            plain = self._open_attempt(attempt.endpoint, reasoning=False)
            if plain.data != attempt.data:
                self._sends_reasoning = False
                return self._send_attempt(plain)
        self._failures += 1
        if (delay := self._find_delay(error)) is not None:
            return [Wait(delay)]
        if selection.fail(error):
            self.failed.append(error)
            self._failures, self._sends_reasoning = 0, True
            return self.send()
        api, has_callers_keys = selection.current.api, self._route.has_callers_keys
        answer = provider_errors.caller_error(error, self.wire, api, has_callers_keys=has_callers_keys)
        return self.respond_error(answer)

    def _find_delay(self, error: ProviderError) -> float | None:
        """Return the delay before the same target is tried again; None if it is not."""
        selection = self._selection
        if not (error.retryable and selection.is_retryable and self._failures < self._route.attempts):
            return None
        delay = _FIRST_DELAY * 2 ** (self._failures - 1) if error.retry_after is None else error.retry_after
        is_worth_waiting = failover.is_worth_waiting(error, delay, has_successor=selection.has_successor)
        return min(delay, _MAX_DELAY) if is_worth_waiting else None

    def _end_failed_stream(self, rendered: bytes, error: ProviderError) -> list[Action]:
        """End a stream that has content with its rendered error. Silence is not awaited by the next request too."""
        self.error = error
        if error.cause == "timeout":
            self._selection.pause(error)
        return [*self._write_held(), *self._end_stream(rendered)]

    def respond_error(self, error: ApiError) -> list[Action]:
        if not (self._has_head or self._is_event(error)):
            return super().respond_error(error)
        self.reject(error)
        return self._end_stream(self._render_stream_error(error))

    def _is_event(self, error: ApiError) -> bool:
        """Return whether this client acts on an error only if it is an event, which then begins the stream."""
        form = self.wire.error_forms[classify_error(error)]
        return self._caller.stream and form.is_event(self._caller.headers.get("user-agent", ""))

    def _render_stream_error(self, error: ApiError) -> bytes:
        """Render an error in a stream that has begun, but has no reply yet."""
        wire = self.wire
        context = RenderContext(
            IdMap(wire.id_scheme(parse_model(None)), provider=wire.provider), NameMap(ANY_NAME), Report()
        )
        return wire.stream_renderer(context, self._caller.model).render_failure(error)

    # -------------------------------------------------------------------------------------------------------- the store

    def _save(self, attempt: Attempt, response: Raw | None) -> list[Action]:
        """Return the action that saves the reasoning of the reply, and the response where callers may refer to it."""
        if not self._settings.has_store:
            return []
        entries = {**self._reasoning_entry(attempt), **self._response_entry(response)}
        return [Save(entries)] if entries else []

    def _reasoning_entry(self, attempt: Attempt) -> dict[str, bytes]:
        sealer = attempt.sealer
        if sealer is None or not sealer.blocks or not sealer.calls:
            return {}
        settings = self._settings
        entry = seal(
            sealer.blocks,
            bind_endpoint(attempt.endpoint),
            settings.keys,
            settings.now().timestamp(),
            max_size=_MAX_STORED_SIZE,
        )
        if entry is None:
            return {}
        call, given_id = sealer.calls[0]
        # Without an entry that marks the conversation, no earlier call has one.
        history = self._history or self._read_history().add_entries(lambda _call_id, _digest: None)
        [digest], _ = history.digest.add([Message("ai", (call,))])
        history.restorer.add(given_id, digest, entry)
        settings.histories.put(self._history_key, history)
        return {self._entry_keys("reasoning", given_id, digest)[0]: entry.encode(), self._opening_keys[0]: b""}

    def _response_entry(self, response: Raw | None) -> dict[str, bytes]:
        if response is None:
            return {}
        made = stored_responses.make_entries(self._caller, self._answered_body, response, self._stored)
        return {self._entry_keys(kind, entry_id, "")[0]: entry for kind, entry_id, entry in made}

    @property
    def _answered_body(self) -> bytes:
        """The body whose items precede those of the response."""
        return self._given

    def _entry_keys(self, kind: EntryKind, call_id: str, digest: str) -> tuple[str, ...]:
        return entry_keys(self._settings.keys, self._client, kind, call_id, digest)


def _find_spending(attempt: Attempt | None) -> list[tuple[Endpoint, Usage]]:
    billed = attempt.find_billed_usage() if attempt is not None else None
    return [] if attempt is None or billed is None else [(attempt.endpoint, billed)]

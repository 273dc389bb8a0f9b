"""Relays that need no reply of a model: model lists, token counts, stored responses and conversations, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from msgspec.structs import replace

from segue._convert import convert_job
from segue.bridge import aws, provider_errors, stored_items, stored_responses
from segue.bridge.actions import Action, Authorize, Delete, ResponseHead, Save, Send
from segue.bridge.caller import Caller, own_error
from segue.bridge.caller_key import use_caller_key
from segue.bridge.envelopes import EntryKind, entry_keys
from segue.bridge.http_requests import count_request
from segue.bridge.listings import (
    COUNTERS,
    ModelEntry,
    count_body,
    estimate_tokens,
    parse_count_request,
    parse_token_count,
    render_model,
    render_models,
    render_token_count,
)
from segue.bridge.provider_errors import TransportError
from segue.bridge.providers import Endpoint
from segue.bridge.relay import Relay, RelaySettings
from segue.bridge.routes import Route
from segue.bridge.stored_responses import Reference, StoredHistory
from segue.conversion.convert import ConvertJob
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import ApiError, Wire
from segue.wire.registry import WIRES, find_wire_or_server

_HTTP_OK = 200
_MAX_BODY = 1 << 18
_MODEL_LIST_QUERY = "client_version"


class LocalRelay(Relay):
    """An exchange that needs no provider. Nothing is sent, so the inputs of a provider's response never arrive."""

    def send(self) -> list[Action]:
        return []

    def authorize(self, credentials: aws.Credentials | None) -> list[Action]:
        return []

    def receive_head(self, head: ResponseHead) -> list[Action]:
        return []

    def receive(self, data: bytes) -> list[Action]:
        return []

    def receive_end(self) -> list[Action]:
        return []

    def receive_failure(self, error: TransportError) -> list[Action]:
        return []


class ErrorRelay(LocalRelay):
    """A request that is rejected."""

    def __init__(self, wire: Wire, error: ApiError, invalid: InputError | None = None) -> None:
        super().__init__(wire)
        self.invalid = invalid
        self.actions = self.respond_error(error)


class ModelsRelay(LocalRelay):
    """A request for the list of models, or for one of them."""

    def __init__(self, settings: RelaySettings, caller: Caller, query: str, client: str) -> None:
        super().__init__(caller.wire)
        self.actions = self.guard(lambda: self._respond(settings.router.models(client), caller, query))

    def _respond(self, entries: tuple[ModelEntry, ...], caller: Caller, query: str) -> list[Action]:
        api = caller.api_path.api
        if caller.api_path.operation == "models":
            return self.respond_json(render_models(api, entries, for_codex=_MODEL_LIST_QUERY in parse_qs(query)))
        name = caller.model or ""
        entry = next((entry for entry in entries if entry.name == name), None)
        if entry is None:
            return self.respond_error(own_error(404, f"the model {name!r} does not exist", self.wire, "unknown-model"))
        return self.respond_json(render_model(api, entry))


class StoredHistoryRelay(LocalRelay):
    """A request for a stored response or conversation, its items or its deletion, or for a new conversation."""

    def __init__(self, settings: RelaySettings, caller: Caller, client: str, query: str) -> None:
        super().__init__(caller.wire)
        self._settings, self._caller, self._client, self._query = settings, caller, client, query
        self.actions = self.guard(self._create if caller.api_path.operation == "create" else self._load)

    def _keys(self, kind: EntryKind, entry_id: str) -> tuple[str, ...]:
        return entry_keys(self._settings.keys, self._client, kind, entry_id, "")

    def _create(self) -> list[Action]:
        if not self._settings.has_store:
            return self.respond_error(own_error(404, "conversations need a store", self.wire))
        settings, conversation_id = self._settings, f"conv_{self._settings.random(24).hex()}"
        created = int(settings.now().timestamp())
        entry = stored_items.create_conversation(self._caller, conversation_id, created)
        body = stored_items.serve(self._caller.api_path, entry, "")
        return [Save({self._keys("conversations", conversation_id)[0]: entry}), *self.respond_json(body)]

    def _load(self) -> list[Action]:
        api_path = self._caller.api_path
        entry_id = api_path.resource or ""
        keys = self._keys(api_path.collection, entry_id)

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            entry = next((found[key] for key in keys if key in found), None)
            if entry is None:
                return self.respond_error(stored_responses.not_found(api_path.collection, entry_id))
            if api_path.operation == "append":
                entry, body = stored_items.append_items(self._caller, entry)
                return [Save({keys[0]: entry}), *self.respond_json(body)]
            response = self.respond_json(stored_items.serve(api_path, entry, self._query))
            return [Delete(keys), *response] if api_path.operation == "delete" else response

        return self.load(list(keys), proceed) if self._settings.has_store else proceed({})


class CountRelay(Relay):
    """A request for the number of tokens: counted by the provider, or estimated."""

    def __init__(self, settings: RelaySettings, caller: Caller, route: Route, client: str) -> None:
        super().__init__(caller.wire)
        self.route = route
        self.model = caller.model
        self._policy = replace(route.policy, body_model="alias")
        self._settings = settings
        self._caller, self._client = caller, client
        self._endpoint: Endpoint = settings.pauses.choose(route.targets)
        keyed = use_caller_key(self._endpoint, caller) if route.pass_credentials else self._endpoint
        self._status = 0
        self._chunks: list[bytes] = []
        counted = keyed is not None and route.token_counting == "upstream" and WIRES[keyed.api].base_api in COUNTERS
        self._endpoint = keyed or self._endpoint
        self.actions = self.guard(lambda: self._start(self.send if counted else self._estimate))

    @property
    def target(self) -> str | None:
        return self._endpoint.name

    def _start(self, count: Callable[[], list[Action]]) -> list[Action]:
        """Count what the body refers to as well, where it is stored here."""
        reference = stored_responses.find_reference(self._caller, has_store=self._settings.has_store)
        if not (isinstance(reference, Reference) and self._settings.has_store):
            return count()
        keys = entry_keys(self._settings.keys, self._client, reference.kind, reference.id, "")

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            history = stored_responses.read_entry(reference, next((found[key] for key in keys if key in found), None))
            if isinstance(history, StoredHistory):
                self._caller = replace(self._caller, body=stored_responses.expand(self._caller, history))
            return count()

        return self.load(list(keys), proceed)

    def _estimate(self) -> list[Action]:
        request = self.wire.parse_request(parse_count_request(self._caller.api_path.api, self._caller.body))
        return self._respond(estimate_tokens(request))

    def _respond(self, tokens: int) -> list[Action]:
        return self.respond_json(render_token_count(self._caller.api_path.api, tokens))

    def send(self) -> list[Action]:
        signer = self._endpoint.signer
        return self.authorize(signer) if signer is None or isinstance(signer, aws.Credentials) else [Authorize(signer)]

    def authorize(self, credentials: aws.Credentials | None) -> list[Action]:
        endpoint = self._endpoint
        target = find_wire_or_server(endpoint.api, endpoint.profile, argument="api")
        job = ConvertJob(
            target=target, source=self.wire, base_wire=WIRES[target.name], model=endpoint.model, policy=self._policy
        )
        converted = convert_job(parse_count_request(self._caller.api_path.api, self._caller.body), job)
        path = COUNTERS[target.base_api].path
        body = count_body(endpoint.api, converted.data, endpoint.model)
        headers = self._caller.passed_headers(WIRES[endpoint.api].provider)
        request = count_request(
            endpoint, path, body, now=self._settings.now(), credentials=credentials, headers=headers
        )
        return [Send(request)]

    def receive_head(self, head: ResponseHead) -> list[Action]:
        self._status = head.status
        return []

    def receive(self, data: bytes) -> list[Action]:
        if sum(map(len, self._chunks)) < _MAX_BODY:
            self._chunks.append(data)
        return []

    def receive_end(self) -> list[Action]:
        """Return the provider's count; an estimate where it has none."""
        if self._status != _HTTP_OK:
            return self._estimate()
        try:
            return self._respond(parse_token_count(self._endpoint.api, b"".join(self._chunks)))
        except RemoteProtocolError:
            return self._estimate()

    def receive_failure(self, error: TransportError) -> list[Action]:
        self.error = provider_errors.connection_error(self._endpoint, error)
        return self._estimate()

"""Relays that need no reply of a model: model lists, token counts, stored responses, errors."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from msgspec.structs import replace

from segue._convert import convert_job
from segue.bridge import aws, provider_errors, stored_responses
from segue.bridge.actions import Action, Authorize, Delete, ResponseHead, Send
from segue.bridge.caller import Caller, own_error
from segue.bridge.caller_key import use_caller_key
from segue.bridge.envelopes import entry_keys
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


class StoredResponseRelay(LocalRelay):
    """A request for a stored response, its input items, or its deletion."""

    def __init__(self, settings: RelaySettings, caller: Caller, client: str) -> None:
        super().__init__(caller.wire)
        api_path = caller.api_path
        response_id = api_path.resource or ""
        keys = response_keys(settings, client, response_id)

        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            stored = next((found[key] for key in keys if key in found), None)
            if stored is None:
                return self.respond_error(stored_responses.not_found(response_id))
            response = self.respond_json(stored_responses.serve(api_path, stored))
            return [Delete(keys), *response] if api_path.operation == "delete" else response

        self.actions = self.load(list(keys), proceed) if settings.has_store else proceed({})


def response_keys(settings: RelaySettings, client: str, response_id: str) -> tuple[str, ...]:
    """Return the keys of the store entry of a response: the first is that under which it is saved."""
    return entry_keys(settings.keys, client, "responses", response_id, "")


class CountRelay(Relay):
    """A request for the number of tokens: counted by the provider, or estimated."""

    def __init__(self, settings: RelaySettings, caller: Caller, route: Route) -> None:
        super().__init__(caller.wire)
        self.route = route
        self.model = caller.model
        self._policy = replace(route.policy, body_model="alias")
        self._settings = settings
        self._caller = caller
        self._endpoint: Endpoint = settings.pauses.choose(route.targets)
        keyed = use_caller_key(self._endpoint, caller) if route.pass_credentials else self._endpoint
        self._status = 0
        self._chunks: list[bytes] = []
        counted = keyed is not None and route.token_counting == "upstream" and WIRES[keyed.api].base_api in COUNTERS
        self._endpoint = keyed or self._endpoint
        self.actions = self.guard(self.send if counted else self._estimate)

    @property
    def target(self) -> str | None:
        return self._endpoint.name

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
            target=target,
            source=self.wire,
            base_wire=WIRES[target.name],
            model=endpoint.model,
            policy=self._policy,
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

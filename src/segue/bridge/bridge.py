"""`Bridge`: opens the relay of each request of a caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from segue.bridge.api_paths import find_api_path, guess_api
from segue.bridge.body_limits import BodyLimits, find_size_error
from segue.bridge.caller import Caller, own_error, parse_caller
from segue.bridge.compaction import DEFAULT_LIMIT
from segue.bridge.compaction_relay import CompactionRelay
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.failover import FIRST_BYTE, TargetPauses
from segue.bridge.lookups import CountRelay, ErrorRelay, ModelsRelay, StoredHistoryRelay
from segue.bridge.relay import Relay, RelaySettings, invalid_request_error
from segue.bridge.reply_relay import ReplyRelay
from segue.bridge.routes import Route, RouteQuery, Router
from segue.errors import InputError
from segue.wire.base import ApiError, Wire
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits
from segue.wire.registry import WIRES

DEFAULT_MAX_AGE = 30 * 86_400.0
"""How long an envelope can be opened, in seconds."""


class Bridge:
    """Opens relays. The clock, the randomness and the store are the shell's.

    `now` returns the time in UTC, `random` a number of random bytes. `has_store` is whether the shell carries out
    `Load` and `Save`. `max_age` is that of envelopes, in seconds, `first_byte` that of `RelaySettings`. `pauses` are
    shared with other bridges where given. `body_limits` are those of callers' bodies, if any.
    `compaction_limit` is that of `RelaySettings`.
    """

    def __init__(
        self,
        router: Router,
        *,
        keys: EnvelopeKeys,
        now: Callable[[], datetime],
        random: Callable[[int], bytes],
        has_store: bool = True,
        max_age: float = DEFAULT_MAX_AGE,
        limits: ReplyLimits = DEFAULT_LIMITS,
        body_limits: BodyLimits | None = None,
        pauses: TargetPauses | None = None,
        first_byte: float = FIRST_BYTE,
        compaction_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._body_limits = body_limits
        pauses = pauses or TargetPauses(lambda: now().timestamp())
        self._settings = RelaySettings(
            router, keys, now, random, pauses, has_store, max_age, limits, first_byte, compaction_limit
        )

    def configure(self, *, body_limits: BodyLimits, first_byte: float, compaction_limit: int) -> None:
        """Change the settings of relays that are opened from now on."""
        self._body_limits = body_limits
        self._settings = msgspec.structs.replace(
            self._settings, first_byte=first_byte, compaction_limit=compaction_limit
        )

    def open(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, client: str = "") -> Relay:
        """Return the relay of a caller's request. `path` may have a query; `client` identifies the caller.

        A path that segue does not translate gets an error with the status 404. Use `find_api_path` to test it before.
        """
        api_path = find_api_path(method, path, headers)
        if api_path is None:
            message = f"segue does not translate {method} {path.partition('?')[0]}"
            api = guess_api(method, path, headers)
            return ErrorRelay(WIRES[api], own_error(404, message, WIRES[api]))
        try:
            caller = parse_caller(api_path, path, headers, body)
        except InputError as error:
            return ErrorRelay(WIRES[api_path.api], invalid_request_error(error), error)
        too_large = None if self._body_limits is None else find_size_error(caller, self._body_limits)
        if too_large is not None:
            return ErrorRelay(caller.wire, own_error(413, too_large, caller.wire))
        if api_path.operation in ("models", "model"):
            return ModelsRelay(self._settings, caller, path.partition("?")[2], client)
        if api_path.operation in ("retrieve", "items", "delete", "create", "append"):
            return StoredHistoryRelay(self._settings, caller, client, path.partition("?")[2])
        if api_path.operation == "compact":
            if caller.model is None:
                return ErrorRelay(caller.wire, _missing_model_error(caller.wire))
            caller = msgspec.structs.replace(caller, stream=False)
        try:
            route = self._find_route(caller, client)
        except InputError as error:
            if caller.model is None:
                return ErrorRelay(caller.wire, _missing_model_error(caller.wire))
            return ErrorRelay(caller.wire, own_error(404, str(error), caller.wire, "unknown-model"), error)
        if route.caller is not None:
            caller = msgspec.structs.replace(caller, wire=WIRES[route.caller])
        if api_path.operation == "count":
            return CountRelay(self._settings, caller, route, client)
        relay = ReplyRelay if caller.wire.compaction is None else CompactionRelay
        return relay(self._settings, caller, route, client)

    def _find_route(self, caller: Caller, client: str) -> Route:
        query = RouteQuery(caller.api_path, caller.model, caller.headers, caller.body, client)
        route = self._settings.router.find(query)
        if not route.targets:
            raise InputError(f"the route {route.name} has no targets", path="model")
        return route


def _missing_model_error(wire: Wire) -> ApiError:
    key = wire.model_key
    message = f"Missing required parameter: '{key}'."
    return ApiError(400, message, code="missing_required_parameter", param=key, error_kind="invalid")

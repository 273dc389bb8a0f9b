"""The gateway's own paths: health, metrics, and the control calls of `segue route`.

Control calls need the token in the record file, which only the user who started the gateway can read. Before a caller
sends it, `/healthz` proves with the caller's nonce that this gateway knows it. Where clients need keys, metrics and the
details of `/readyz` need the token, or a client key that may read them: they show names and budgets of all clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from segue._switch_cost import SwitchCost
from segue.errors import InputError
from segue.gateway.client_keys import find_keys, has_secret
from segue.gateway.gateway_record import NONCE_HEADER, prove_token
from segue.gateway.metrics import Metrics
from segue.gateway.shared_metrics import SharedMetrics

OWN_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/segue/status", "/segue/route", "/v1/key"})
"""The paths that the gateway answers itself."""
_CHANGE_PATH = "/segue/route"
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class RouteChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a control call: the models that serve all names from now on, or a reload of the configuration."""

    models: tuple[str, ...] = ()
    reload: bool = False


class LocalResponse(NamedTuple):
    """The response of one of the gateway's own paths."""

    status: int
    content_type: str
    data: bytes
    is_logged: bool = False
    error: str = ""


class ControlApi:
    """Answers the gateway's own paths.

    `may_read_metrics` is whether one of these keys may read the metrics, and more than the status. `change` sets the
    models and returns their names; `switch_cost` predicts what that costs; `reload` loads the configuration again;
    `status` describes the gateway.
    """

    def __init__(
        self,
        token: str,
        metrics: Metrics | SharedMetrics,
        *,
        may_read_metrics: Callable[[Sequence[str]], bool],
        change: Callable[[Sequence[str]], Sequence[str]],
        switch_cost: Callable[[], SwitchCost | None],
        reload: Callable[[], None],
        status: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._token = token
        self._metrics = metrics
        self._may_read_metrics = may_read_metrics
        self._set_models = change
        self._switch_cost = switch_cost
        self._reload = reload
        self._status = status

    def is_change(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether this is a call for `change`, with the token. Its body is not read before."""
        return (method, path) == ("POST", _CHANGE_PATH) and self._has_token(headers)

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> LocalResponse | None:
        """Return the response of a path of the gateway itself; None for those of the APIs."""
        match method, path:
            case "GET", "/healthz":
                nonce = headers.get(NONCE_HEADER)
                return LocalResponse(200, _TEXT, b"ok\n" if nonce is None else prove_token(self._token, nonce).encode())
            case "GET", "/readyz":
                return self._report_readiness(show_all=self._may_read(headers))
            case "GET", "/metrics" if self._may_read(headers):
                return LocalResponse(200, _PROMETHEUS, self._metrics.render().encode("utf-8", "replace"))
            case "GET", "/metrics":
                why = "metrics need a client key that may read them; segue keys client add NAME --metrics makes one"
                return json_response(401, {"error": why}, is_logged=True)
            case "GET", "/segue/status" if self._has_token(headers):
                return json_response(200, self._status())
            case (_, "/segue/status") | (_, "/segue/route"):
                return json_response(
                    401,
                    {"error": "a control call needs the token in the record file of the gateway; segue route sends it"},
                    is_logged=True,
                )
            case _:
                return None

    def answer_probe(self, method: str, path: str, headers: Mapping[str, str]) -> LocalResponse | None:
        """Return the response for a probe by any name of this machine: it shows neither models nor proofs."""
        match method, path:
            case "GET", "/healthz" if NONCE_HEADER not in headers:
                return LocalResponse(200, _TEXT, b"ok\n")
            case "GET", "/readyz":
                return self._report_readiness(show_all=False)
            case _:
                return None

    def _report_readiness(self, *, show_all: bool) -> LocalResponse:
        status = self._status()
        state = status["status"]
        return json_response(503 if state == "not-ready" else 200, status if show_all else {"status": state})

    def change(self, body: bytes) -> LocalResponse:
        """Change the models, or load the configuration again, as the body requests."""
        try:
            return json_response(200, self._apply(body), is_logged=True)
        except InputError as error:
            return json_response(400, {"error": str(error)}, is_logged=True)

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        return has_secret(find_keys(headers, ""), self._token)

    def _may_read(self, headers: Mapping[str, str]) -> bool:
        return self._may_read_metrics(find_keys(headers, "")) or self._has_token(headers)

    def _apply(self, body: bytes) -> Mapping[str, Any]:
        try:
            change = msgspec.json.decode(body, type=RouteChange)
        except msgspec.MsgspecError as error:
            raise InputError(str(error)) from None
        if change.reload:
            self._reload()
            return dict(self._status())
        answer = {"models": list(self._set_models(change.models))}
        cost = self._switch_cost()
        return answer if cost is None else {**answer, "switch_cost": cost, "switch": str(cost)}


def json_response(status: int, body: Mapping[str, Any], *, is_logged: bool = False) -> LocalResponse:
    return LocalResponse(status, _JSON, msgspec.json.encode(dict(body)), is_logged, body.get("error", ""))

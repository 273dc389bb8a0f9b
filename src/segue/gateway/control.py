"""The gateway's own paths: health, metrics, and the control calls of `segue route`.

Control calls need the token of the run file, which only the user who started the gateway can read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from segue.errors import InputError
from segue.gateway.guard import find_key, is_equal
from segue.gateway.metrics import Metrics
from segue.gateway.shared_metrics import SharedMetrics

LocalResponse: TypeAlias = tuple[int, str, bytes]
LocalHandler: TypeAlias = Callable[[Mapping[str, str], bytes], LocalResponse]

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class RouteChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a control call: the models that serve all names from now on, or a reload of the configuration."""

    models: tuple[str, ...] = ()
    reload: bool = False


class Control:
    """Answers the gateway's own paths.

    `change` sets the models and returns their names; `reload` loads the configuration again; `status` describes the
    gateway.
    """

    def __init__(
        self,
        token: str,
        metrics: Metrics | SharedMetrics,
        *,
        change: Callable[[Sequence[str]], Sequence[str]],
        reload: Callable[[], None],
        status: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._token = token
        self._metrics = metrics
        self._change = change
        self._reload = reload
        self._status = status
        self._handlers: dict[tuple[str, str], LocalHandler] = {
            ("GET", "/healthz"): lambda _headers, _body: (200, _TEXT, b"ok\n"),
            ("GET", "/readyz"): lambda _headers, _body: _json(200, {"status": "ready", **self._status()}),
            ("GET", "/metrics"): lambda _headers, _body: (200, _PROMETHEUS, self._metrics.render().encode()),
            ("GET", "/segue/status"): self._guarded(lambda _body: dict(self._status())),
            ("POST", "/segue/route"): self._guarded(self._apply),
        }

    def find(self, method: str, path: str) -> LocalHandler | None:
        """Return the handler of a path of the gateway itself; None for those of the APIs."""
        return self._handlers.get((method, path))

    def _guarded(self, answer: Callable[[bytes], Mapping[str, Any]]) -> LocalHandler:
        def handle(headers: Mapping[str, str], body: bytes) -> LocalResponse:
            if not is_equal(find_key(headers, ""), self._token):
                return _json(401, {"error": "a control call needs the token of the run file"})
            try:
                return _json(200, answer(body))
            except InputError as error:
                return _json(400, {"error": str(error)})

        return handle

    def _apply(self, body: bytes) -> Mapping[str, Any]:
        try:
            change = msgspec.json.decode(body, type=RouteChange)
        except msgspec.MsgspecError as error:
            raise InputError(str(error)) from None
        if change.reload:
            self._reload()
            return dict(self._status())
        return {"models": list(self._change(change.models))}


def _json(status: int, body: Mapping[str, Any]) -> LocalResponse:
    return status, _JSON, msgspec.json.encode(dict(body))

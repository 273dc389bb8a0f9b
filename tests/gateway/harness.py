"""A gateway on loopback for tests, with emulated providers behind it."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec.structs import replace

from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import Endpoint, resolve
from segue.emulator import Emulator, start
from segue.emulator.steps import ScriptFunction
from segue.gateway.client_keys import ClientKey, GroupSettings
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.gateway.server import GatewayServer
from segue.gateway.settings import GatewayContext, GatewayRoutes, GatewaySettings
from segue.gateway.spending import CostLookup
from segue.wire.registry import WIRES

KEYS = EnvelopeKeys(b"k" * 32)
_PATIENCE = 100.0


class Running:
    """A running gateway. `emulators` are its providers by API; `log` has its log lines."""

    def __init__(self, server: GatewayServer, emulators: Mapping[str, Emulator], log: io.StringIO) -> None:
        self.server = server
        self.url = server.url
        self.token = server.token
        self.emulators = emulators
        self._log = log

    @property
    def log(self) -> str:
        return self._log.getvalue()

    def wait_for_log(self, text: str) -> None:
        """Wait for a log line: it is written after the response."""
        deadline = time.monotonic() + _PATIENCE
        while text not in self.log:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.01)


def model_of(api: str) -> str:
    """Return the default model of an API, at the provider of the harness."""
    return f"test-{api}/{WIRES[api].default_model}"


def build_server(
    find: Callable[[str], Endpoint], loaded: GatewayRoutes, log: io.StringIO, **options: Any
) -> GatewayServer:
    """Return a gateway on a free port. `options` are fields of the settings, or of the context."""
    names = {*GatewaySettings.__struct_fields__}
    settings = GatewaySettings(port=0, **{name: value for name, value in options.items() if name in names})
    context = {name: value for name, value in options.items() if name not in names}
    return GatewayServer(settings, GatewayContext(find, lambda: loaded, KEYS, log_output=log, **context))


@contextmanager
def running_gateway(
    scripts: Mapping[str, str | ScriptFunction],
    *,
    routes: Sequence[RouteSettings] = (),
    default: Sequence[str] = (),
    clients: Sequence[ClientKey] = (),
    passthrough: Sequence[PassthroughSettings] = (),
    buffer_tool_calls: bool = False,
    emulator_options: Mapping[str, Any] | None = None,
    options_of: Mapping[str, Mapping[str, Any]] | None = None,
    contexts: Mapping[str, int] | None = None,
    groups: Mapping[str, GroupSettings] | None = None,
    cost: CostLookup = lambda _provider, _model, _usage: None,
    **settings: Any,
) -> Generator[Running]:
    """Run a gateway with an emulated provider for each API in `scripts`, named `test-API`.

    `emulator_options` are those of all emulators, `options_of` those of one API; `contexts` are sizes of models by API.
    """
    with ExitStack() as stack:
        options = emulator_options or {}
        emulators = {
            api: stack.enter_context(
                start(api, script=script or None, **{**options, **(options_of or {}).get(api, {})})
            )
            for api, script in scripts.items()
        }
        providers = {
            f"test-{api}": {"api": api, "base_url": emulator.base_url, "key_variable": "KEY"}
            for api, emulator in emulators.items()
        }

        def find(name: str) -> Endpoint:
            endpoint = resolve(name, {"KEY": "upstream-key", "AWS_REGION": "us-east-1"}, providers)
            return replace(endpoint, context=(contexts or {}).get(endpoint.api))

        first = tuple(default) or (model_of(next(iter(scripts))),)
        loaded = GatewayRoutes(
            tuple(routes),
            first,
            prefers_default=not routes,
            clients=tuple(clients),
            passthrough=tuple(passthrough),
            groups=groups or {},
            cost=cost,
            buffer_tool_calls=buffer_tool_calls,
        )
        log = io.StringIO()
        server = build_server(find, loaded, log, **settings)
        with server.running():
            yield Running(server, emulators, log)

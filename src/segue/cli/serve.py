"""`segue serve`: the gateway, which gives clients of any API any model."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from segue.cli import options, streams
from segue.cli.streams import BadInputError
from segue.emulator.models import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from segue.bridge.providers import Endpoint
    from segue.canonical.request import Usage
    from segue.cli.config import Config
    from segue.cli.providers import Providers
    from segue.gateway.client_keys import ClientKey, GroupSettings
    from segue.gateway.passthrough_routes import PassthroughSettings
    from segue.gateway.routes import RouteSettings
    from segue.gateway.server import GatewayServer
    from segue.gateway.settings import GatewayRoutes, GatewaySettings

_EMULATED = "the models are emulated: their replies are not those of real models"


@options.command("serve", json_help="Log JSON lines, one for each request.")
@click.option("-m", "--model", "models", multiple=True, metavar="MODEL", help="Default model (repeatable: fallbacks).")
@click.option("--host", metavar="H", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port (default: 8787).")
@click.option("--emulated", is_flag=True, help="Serve emulated models: without key, network or cost.")
@click.option("--usage", metavar="FILE", help="Append usage to a file of JSON lines.")
@click.option("--store", metavar="FILE|URL", help="Keep reasoning and responses in SQLite or PostgreSQL.")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes (default: 1; more need a store).")
@click.option("--log-bodies", type=click.Path(path_type=Path), metavar="FILE", help="Append all bodies to a file.")
@click.option("--worker", "is_worker", is_flag=True, hidden=True)
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml for this run.")
def command(
    *,
    models: tuple[str, ...],
    host: str | None,
    port: int | None,
    emulated: bool,
    usage: str | None,
    store: str | None,
    workers: int | None,
    log_bodies: Path | None,
    is_worker: bool,
    trusting: bool,
    as_json: bool,
) -> None:
    """Serve every client API on one address, with any model behind it.

    Clients send their requests in the API they have: Chat Completions, Responses, Messages, Gemini or Bedrock Converse.
    A model name is `provider/model`, an alias or a route of the configuration; other names get the default model.
    `segue route MODEL` changes the model while it runs. If nothing is configured, emulated models are served.

    \b
      segue serve -m moonshot/kimi-k2.6
      ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
    """
    from segue.bridge.envelope_keys import load_envelope_keys
    from segue.cli.gateway_settings import client_key_file, find_file, load_client_keys, load_settings
    from segue.cli.model_choice import EMULATED_NOTE
    from segue.errors import InputError
    from segue.gateway.server import GatewayServer
    from segue.gateway.settings import GatewayContext
    from segue.gateway.workers import read_handoff, report_ready

    handoff = read_handoff() if is_worker else None
    settings, loaded = load_settings(trusting=trusting)
    given = {"host": host, "port": port, "usage": usage, "store": store, "workers": workers}
    given = {name: value for name, value in given.items() if value is not None}
    routes = _Routes(models, loaded, given, emulated=emulated, trusting=trusting)
    if loaded.untrusted_file is not None and handoff is None:
        streams.print_message(loaded.untrusted_file.describe_ignored())
    note = None if not routes.is_emulated else _EMULATED if emulated else EMULATED_NOTE
    settings = replace(settings, **given)
    context = GatewayContext(
        routes.resolver.resolve,
        routes.load,
        load_envelope_keys(warn=streams.print_message),
        client_key_file(),
        load_client_keys,
        log_json=as_json,
        body_file=log_bodies,
        is_emulated=routes.is_emulated,
    )
    try:
        server = GatewayServer(settings, context, handoff)
    except InputError as error:
        file, (table, _, name) = find_file(loaded), error.path.partition(".")
        if file is None or table != "gateway" or name in given:
            raise
        raise BadInputError(f"{file.path}: {error}") from None
    if handoff is not None:
        server.run(report_ready)
    elif settings.workers > 1:
        # `-P` keeps the working folder off the path.
        worker = [sys.executable, "-P", "-m", "segue", *sys.argv[1:], "--worker"]
        raise click.exceptions.Exit(128 + server.run_workers(worker, lambda: _print_opening(server, note)))
    else:
        server.run(lambda: _print_opening(server, note))


class _Routes:
    """Loads the routes of a gateway: at the start, and again at each reload.

    `models` and the settings `given` are those of the command line.
    """

    def __init__(
        self, models: Sequence[str], loaded: Config, given: Mapping[str, Any], *, emulated: bool, trusting: bool
    ) -> None:
        from segue.cli.model_choice import choose_models
        from segue.cli.providers import Providers

        self._models = models
        self._given = given
        self._emulated = emulated
        self._trusting = trusting
        self._check_trust(loaded)
        known = Providers(loaded)
        self.is_emulated = choose_models(known, models, emulated=emulated, required=False).is_emulated
        self.resolver = ModelResolver(known, emulated=self.is_emulated)

    def load(self) -> GatewayRoutes:
        from segue.cli.gateway_settings import load_client_keys, load_settings
        from segue.cli.model_choice import choose_models
        from segue.cli.providers import Providers
        from segue.errors import InputError

        settings, loaded = load_settings(trusting=self._trusting)
        self._check_trust(loaded)
        providers = Providers(loaded)
        routes = () if self._models else settings.routes
        needs_default = bool(self._models) or not (routes or settings.passthrough)
        default = choose_models(providers, self._models, emulated=self._emulated, required=needs_default)
        if default.is_emulated != self.is_emulated:
            kind = "emulated" if self.is_emulated else "real"
            raise InputError(f"the gateway was started with {kind} models: start segue serve again")
        return load_routes(
            default.names,
            self.resolver.with_providers(providers),
            prefers_default=bool(self._models) or default.is_emulated,
            needs_key=needs_default,
            routes=routes,
            passthrough=settings.passthrough,
            clients=load_client_keys(),
            groups=settings.groups,
            settings=replace(settings, **self._given),
        )

    def _check_trust(self, loaded: Config) -> None:
        """Raise `BadInputError` if the routes are in a project file that is not trusted: other models would be served.

        With a model on the command line, the routes of the configuration are left out anyway.
        """
        file = loaded.untrusted_file
        if file is not None and "gateway" in file.ignored and not self._models and not self._emulated:
            raise BadInputError(
                f"{file.path} has settings of the gateway and is not trusted: segue trust shows and trusts it, "
                "--trust does so for this run"
            )


class ModelResolver:
    """Resolves model names to endpoints: those of the configuration, or emulated ones named `emulated/MODEL`."""

    def __init__(self, known: Providers, *, emulated: bool) -> None:
        self._known = known
        self.is_emulated = emulated

    def with_providers(self, known: Providers) -> ModelResolver:
        """Return a resolver for providers that were loaded again. Emulators that run are shared."""
        resolver = copy.copy(self)
        resolver._known = known
        return resolver

    @property
    def aliases(self) -> Mapping[str, str]:
        return self._known.config.settings.aliases

    @property
    def switch_cost_above(self) -> int:
        return self._known.switch_cost_above

    def resolve(self, name: str) -> Endpoint:
        return self._known.endpoint(PREFIX + name.removeprefix(PREFIX) if self.is_emulated else name)

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the cost in dollars; None where no price is known."""
        return 0.0 if self.is_emulated else self._known.cost(provider, model, usage)


def load_routes(
    default: Sequence[str],
    resolver: ModelResolver,
    *,
    prefers_default: bool = True,
    needs_key: bool = True,
    routes: Sequence[RouteSettings] = (),
    passthrough: Sequence[PassthroughSettings] = (),
    clients: Sequence[ClientKey] = (),
    groups: Mapping[str, GroupSettings] | None = None,
    settings: GatewaySettings | None = None,
) -> GatewayRoutes:
    """Return the routes of a gateway. With `needs_key`, one of the default models must have a key."""
    from segue.cli.model_choice import require_key
    from segue.gateway.settings import GatewayRoutes

    if needs_key and not resolver.is_emulated:
        require_key([resolver.resolve(name) for name in default])
    return GatewayRoutes(
        routes=tuple(routes),
        passthrough=tuple(passthrough),
        default=tuple(default),
        prefers_default=prefers_default,
        aliases=resolver.aliases,
        clients=tuple(clients),
        groups=groups or {},
        settings=settings,
        cost=resolver.cost,
        switch_cost_above=resolver.switch_cost_above,
        resolve=resolver.resolve,
    )


def _print_opening(server: GatewayServer, note: str | None) -> None:
    models = ", ".join(server.describe()["models"]) or "passthrough routes"
    streams.print_message(f"serving {models} on {server.url}; Ctrl-C stops it")
    if note is not None:
        streams.print_message(note)
    for warning in server.warnings:
        streams.print_message(warning)

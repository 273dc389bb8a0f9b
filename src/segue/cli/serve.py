"""`segue serve`: the gateway, which gives clients of any API any model."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from segue.cli import options, streams
from segue.cli.streams import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from segue.bridge.providers import Endpoint
    from segue.cli.config import Config
    from segue.cli.providers import Providers
    from segue.gateway.client_keys import ClientKey
    from segue.gateway.raw_routes import RawRouteSettings
    from segue.gateway.routes import RouteSettings
    from segue.gateway.server import GatewayRoutes, GatewayServer

EMULATED = "emulated/"
_HOST, _PORT = "127.0.0.1", 8787


@options.command("serve", json_help="Log JSON lines, one for each request.")
@click.option("-m", "--model", "models", multiple=True, metavar="MODEL", help="Default model (repeatable: fallbacks).")
@click.option("--host", metavar="H", help=f"Address to listen on (default: {_HOST}).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help=f"Port (default: {_PORT}).")
@click.option("--emulated", is_flag=True, help="Serve emulated models: without key, network or cost.")
@click.option("--usage", type=click.Path(path_type=Path), metavar="FILE", help="Append usage to a file of JSON lines.")
@click.option("--store", metavar="FILE|URL", help="Keep reasoning and responses in SQLite or PostgreSQL.")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes (default: 1; more need a store).")
@click.option("--log-json", is_flag=True, help="As --json.")
@click.option("--log-bodies", type=click.Path(path_type=Path), metavar="FILE", help="Append all bodies to a file.")
@click.option("--worker", "is_worker", is_flag=True, hidden=True)
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml for this run.")
def command(
    *,
    models: tuple[str, ...],
    host: str | None,
    port: int | None,
    emulated: bool,
    usage: Path | None,
    store: str | None,
    workers: int | None,
    log_json: bool,
    log_bodies: Path | None,
    is_worker: bool,
    trusting: bool,
    as_json: bool,
) -> None:
    """Serve every client API on one address, with any model behind it.

    Clients send their requests in the API they have: Chat Completions, Responses, Messages, Gemini or Bedrock Converse.
    A model name is `provider/model`, an alias or a route of the configuration; other names get the default model.
    `segue route MODEL` changes the model while it runs. Without any API key, emulated models are served.

    \b
      segue serve -m moonshot/kimi-k2.6
      ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
    """
    from segue.cli.gateway_settings import client_key_file, load_client_keys, load_table
    from segue.cli.providers import Providers
    from segue.errors import InputError
    from segue.gateway.server import GatewayServer, GatewaySettings
    from segue.gateway.workers import read_seat, report_ready
    from segue.store.entries import EntryLimits
    from segue.store.envelope_keys import load_envelope_keys

    seat = read_seat() if is_worker else None
    table, loaded = load_table(trusting=trusting)
    # With a model on the command line, the routes of the configuration are left out anyway.
    needs_trust = not models and not emulated
    _check_trust(loaded, needs_trust=needs_trust)
    if loaded.untrusted_file is not None and seat is None:
        streams.print_message(loaded.untrusted_file.describe_ignored())
    known = Providers(loaded)
    is_emulated = emulated or (not models and not table.routes and known.first_with_key() is None)
    resolver = ModelResolver(known, emulated=is_emulated)

    def load() -> GatewayRoutes:
        try:
            current, reloaded = load_table(trusting=trusting)
            _check_trust(reloaded, needs_trust=needs_trust)
            fresh = resolver.with_providers(Providers(reloaded))
            return load_routes(models, fresh, routes=current.routes, raw=current.raw, clients=load_client_keys())
        except BadInputError as error:
            raise InputError(error.message) from None

    def load_clients() -> tuple[ClientKey, ...]:
        try:
            return load_client_keys()
        except BadInputError as error:
            raise InputError(error.message) from None

    try:
        server = GatewayServer(
            GatewaySettings(
                resolver.resolve,
                load,
                load_envelope_keys(),
                client_key_file(),
                load_clients,
                host=host or table.host or _HOST,
                port=table.port or _PORT if port is None else port,
                hosts=table.hosts,
                origins=table.origins,
                certificate=_find_file(table.certificate, "certificate"),
                private_key=_find_file(table.private_key, "private_key"),
                behind_proxy=table.behind_proxy,
                timeout=table.timeout,
                memory=table.memory_megabytes * 2**20,
                store=store or table.store,
                store_limits=EntryLimits(table.store_megabytes * 2**20, table.store_days * 86_400),
                workers=workers or table.workers,
                log_json=as_json or log_json,
                usage_file=usage or (Path(table.usage).expanduser() if table.usage else None),
                body_file=log_bodies,
                is_emulated=resolver.is_emulated,
            ),
            seat,
        )
        if seat is not None:
            server.run(report_ready)
        elif (workers or table.workers) > 1:
            number = server.run_workers(_worker_command(), lambda: _print_opening(server, resolver))
            raise click.exceptions.Exit(128 + number)
        else:
            server.run(lambda: _print_opening(server, resolver))
    finally:
        resolver.close()


def _check_trust(loaded: Config, *, needs_trust: bool) -> None:
    """Raise `BadInputError` if the routes are in a project file that is not trusted: other models would be served."""
    file = loaded.untrusted_file
    if needs_trust and file is not None and "gateway" in file.ignored:
        raise BadInputError(
            f"{file.path} has settings of the gateway and is not trusted: segue trust shows and trusts it, "
            "--trust does so for this run"
        )


def _find_file(name: str | None, setting: str) -> Path | None:
    if name is None:
        return None
    file = Path(name).expanduser()
    if not file.is_file():
        raise BadInputError(f"gateway.{setting}: {file} is not a file")
    return file


def _worker_command() -> list[str]:
    """Return the command of a worker: this one with the same options. `-P` keeps the working folder off the path."""
    context = click.get_current_context()
    arguments: list[str] = []
    for option in context.command.params:
        value: object = context.params.get(option.name or "")
        name = option.opts[-1]
        if isinstance(value, tuple):
            arguments += [part for one in cast("tuple[object, ...]", value) for part in (name, str(one))]
        elif value is True:
            arguments.append(name)
        elif value is not None and value is not False:
            arguments += [name, str(value)]
    return [sys.executable, "-P", "-m", "segue", "serve", *arguments, "--worker"]


class ModelResolver:
    """Resolves model names to endpoints: those of the configuration, or emulated ones named `emulated/MODEL`."""

    def __init__(self, known: Providers, *, emulated: bool) -> None:
        from segue.cli.emulated_providers import EmulatedProviders

        self._known = known
        self._emulators = EmulatedProviders(known) if emulated else None

    def with_providers(self, known: Providers) -> ModelResolver:
        """Return a resolver for providers that were loaded again. Emulators that run are shared."""
        resolver = copy.copy(self)
        resolver._known = known
        return resolver

    @property
    def aliases(self) -> Mapping[str, str]:
        return self._known.config.settings.aliases

    @property
    def is_emulated(self) -> bool:
        return self._emulators is not None

    def resolve(self, name: str) -> Endpoint:
        if self._emulators is None:
            return self._known.endpoint(name)
        import msgspec

        return msgspec.structs.replace(self._emulators.endpoint(name.removeprefix(EMULATED)), provider=EMULATED[:-1])

    def default_models(self) -> tuple[str, ...]:
        """Return the models of the configuration, or that of the first provider with a key."""
        if configured := self._known.config.settings.model_names:
            return configured
        first = self._known.first_with_key()
        return (first.name,) if first is not None else ("anthropic",)

    def close(self) -> None:
        if self._emulators is not None:
            self._emulators.close()


def load_routes(
    models: Sequence[str],
    resolver: ModelResolver,
    *,
    routes: Sequence[RouteSettings] = (),
    raw: Sequence[RawRouteSettings] = (),
    clients: Sequence[ClientKey] = (),
) -> GatewayRoutes:
    """Return the routes of a gateway.

    With `models`, and where models are emulated, all names without a provider are served by the default ones.
    """
    from segue.gateway.server import GatewayRoutes

    return GatewayRoutes(
        routes=() if models else tuple(routes),
        raw=tuple(raw),
        default=tuple(models) or resolver.default_models(),
        prefers_default=bool(models) or resolver.is_emulated,
        aliases=resolver.aliases,
        clients=tuple(clients),
        resolve=resolver.resolve,
    )


def _print_opening(server: GatewayServer, resolver: ModelResolver) -> None:
    models = ", ".join(server.describe()["models"])
    streams.print_message(f"serving {models} on {server.url}; Ctrl-C stops it")
    if resolver.is_emulated:
        streams.print_message("the models are emulated: their replies are not those of real models")

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
_EMULATED = "the models are emulated: their replies are not those of real models"
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
    `segue route MODEL` changes the model while it runs. If nothing is configured, emulated models are served.

    \b
      segue serve -m moonshot/kimi-k2.6
      ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
    """
    from segue.bridge.body_limits import BodyLimits
    from segue.cli.gateway_settings import client_key_file, load_client_keys, load_table
    from segue.cli.model_choice import EMULATED_NOTE, choose_models
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
    choice = choose_models(known, models, emulated=emulated, required=False)
    resolver = ModelResolver(known, emulated=choice.is_emulated)

    note = None if not choice.is_emulated else _EMULATED if emulated else EMULATED_NOTE

    def load() -> GatewayRoutes:
        try:
            current, reloaded = load_table(trusting=trusting)
            _check_trust(reloaded, needs_trust=needs_trust)
            fresh = Providers(reloaded)
            routes = () if models else current.routes
            needs_default = bool(models) or not (routes or current.raw)
            default = choose_models(fresh, models, emulated=emulated, required=needs_default)
            if default.is_emulated != resolver.is_emulated:
                kind = "emulated" if resolver.is_emulated else "real"
                raise InputError(f"the gateway was started with {kind} models: start segue serve again")
            return load_routes(
                default.names,
                resolver.with_providers(fresh),
                prefers_default=bool(models) or default.is_emulated,
                needs_key=needs_default,
                routes=routes,
                raw=current.raw,
                clients=load_client_keys(),
            )
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
                load_envelope_keys(warn=streams.print_message),
                client_key_file(),
                load_clients,
                host=next(name for name in (host, table.host, _HOST) if name is not None),
                port=table.port or _PORT if port is None else port,
                hosts=table.hosts,
                origins=table.origins,
                certificate=_find_file(table.certificate, "certificate"),
                private_key=_find_file(table.private_key, "private_key"),
                behind_proxy=table.behind_proxy,
                timeout=table.timeout,
                first_byte=table.first_byte,
                memory=table.memory_megabytes * 2**20,
                pending_memory=table.pending_megabytes * 2**20,
                large_body=table.large_megabytes * 2**20,
                body_limits=BodyLimits(table.max_messages, table.max_calls),
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
            number = server.run_workers(_worker_command(), lambda: _print_opening(server, note))
            raise click.exceptions.Exit(128 + number)
        else:
            server.run(lambda: _print_opening(server, note))
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

    def close(self) -> None:
        if self._emulators is not None:
            self._emulators.close()


def load_routes(
    default: Sequence[str],
    resolver: ModelResolver,
    *,
    prefers_default: bool = True,
    needs_key: bool = True,
    routes: Sequence[RouteSettings] = (),
    raw: Sequence[RawRouteSettings] = (),
    clients: Sequence[ClientKey] = (),
) -> GatewayRoutes:
    """Return the routes of a gateway. With `needs_key`, one of the default models must have a key."""
    from segue.cli.model_choice import require_key
    from segue.gateway.server import GatewayRoutes

    if needs_key and not resolver.is_emulated:
        require_key([resolver.resolve(name) for name in default])
    return GatewayRoutes(
        routes=tuple(routes),
        raw=tuple(raw),
        default=tuple(default),
        prefers_default=prefers_default,
        aliases=resolver.aliases,
        clients=tuple(clients),
        resolve=resolver.resolve,
    )


def _print_opening(server: GatewayServer, note: str | None) -> None:
    from segue.bridge.provider_errors import missing_key_error

    models = ", ".join(server.describe()["models"]) or "raw routes"
    streams.print_message(f"serving {models} on {server.url}; Ctrl-C stops it")
    if note is not None:
        streams.print_message(note)
    for message in dict.fromkeys(missing_key_error(target).message for target in server.table.targets_without_key):
        streams.print_message(f"{message}; requests for it go to the next target, or fail")

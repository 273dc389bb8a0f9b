"""`segue with CLIENT`: a coding client on another model, behind a gateway of its own."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from platformdirs import user_cache_path

from segue.cli import options, streams
from segue.cli.serve import ModelResolver, load_routes
from segue.cli.streams import BadInputError
from segue.private_files import make_folder
from segue.processes import run_child
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.bridge.providers import Endpoint
    from segue.gateway.server import GatewayServer
    from segue.gateway.settings import GatewayRoutes
    from segue.sessions.launch import Launch, Program

_PREFIX = "segue-with-"
_OWNER = "owner"
_HELP_SECONDS = 10


def _list_programs() -> str:
    from segue.sessions.registry import PROGRAMS

    return f"CLIENT: {', '.join(PROGRAMS)}."


@options.command("with", json_help="With --print: print the variables and arguments as JSON.", epilog=_list_programs)
@click.argument("client", metavar="CLIENT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS…]")
@click.option("-m", "--model", "models", multiple=True, metavar="MODEL", help="Model (repeatable: fallbacks).")
@click.option("--emulated", is_flag=True, help="Use emulated models: without key, network or cost.")
@click.option("--print", "prints", is_flag=True, help="Print the variables and the command, and start nothing.")
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="Append the gateway's log to a file.")
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml for this run.")
def command(
    client: str,
    arguments: tuple[str, ...],
    *,
    models: tuple[str, ...],
    emulated: bool,
    prints: bool,
    log: Path | None,
    trusting: bool,
    as_json: bool,
) -> None:
    """Run a coding client on another model.

    A gateway is started on loopback for this client alone, and ends with it. The client's own settings, MCP servers and
    sessions stay as they are. `segue route MODEL` in another terminal changes the model while it runs.

    \b
      segue with claude -m moonshot/kimi-k2.6
      segue with codex -m anthropic/claude-sonnet-5 -- exec "fix the tests"
    """
    from segue.sessions.registry import PROGRAMS
    from segue.store.ids import new_owner

    setup = PROGRAMS.get(client)
    if setup is None:
        raise click.UsageError(f"unknown client {client!r}; expected one of {', '.join(PROGRAMS)}")
    program = shutil.which(setup.program)
    if program is None and not prints:
        raise BadInputError(f"{setup.program} is not installed; install it with: {setup.installer} {setup.package}")
    base = None if prints else _prepare_base()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base) as name:
        folder = Path(name)
        (folder / _OWNER).write_text(new_owner())
        (folder / "files").mkdir()
        session = _Session(setup, program or setup.program, arguments, folder)
        code = session.run(models, emulated=emulated, trusting=trusting, log=log, prints=prints, as_json=as_json)
    if code is not None:
        raise click.exceptions.Exit(code)


class _Session:
    """One run of a client with a gateway of its own."""

    def __init__(self, setup: Program, program: str, arguments: Sequence[str], folder: Path) -> None:
        self._setup = setup
        self._program = program
        self._arguments = arguments
        self._folder = folder
        self._key = secrets.token_urlsafe(24)

    def run(
        self, models: Sequence[str], *, emulated: bool, trusting: bool, log: Path | None, prints: bool, as_json: bool
    ) -> int | None:
        """Return the exit code of the client; None if it was only printed."""
        from segue.bridge.envelope_keys import load_envelope_keys
        from segue.bridge.envelopes import EnvelopeKeys
        from segue.cli import providers
        from segue.cli.model_choice import EMULATED_NOTE, choose_models
        from segue.gateway.server import GatewayServer
        from segue.gateway.settings import GatewayContext, GatewaySettings

        # Printing starts nothing, so it leaves nothing in the user's folders.
        keys = EnvelopeKeys(secrets.token_bytes(32)) if prints else load_envelope_keys(warn=streams.print_message)
        known = providers.load(trusting=trusting)
        choice = choose_models(known, models, emulated=emulated)
        resolver = ModelResolver(known, emulated=choice.is_emulated)
        if known.config.untrusted_file is not None:
            streams.print_message(known.config.untrusted_file.describe_ignored())
        with open(log or os.devnull, "a", encoding="utf-8", errors="backslashreplace") as output:  # noqa: PTH123  the null device is not a path of the user
            context = GatewayContext(
                resolver.resolve,
                lambda: self._adapt(load_routes(choice.names, resolver)),
                keys,
                log_output=output,
                is_emulated=resolver.is_emulated,
            )
            server = GatewayServer(GatewaySettings(port=0), context)
            target = server.table.targets[0]
            own_model = self._setup.model_setting and self._setup.model_setting.find(os.environ, Path.cwd())
            is_kept = own_model is None or not server.table.is_chosen(own_model)
            launch = self._prepare(server, target, own_model if is_kept else None, prints=prints)
            if prints:
                self._print(launch, target.name, as_json=as_json)
                return None
            other = "" if is_kept else f", and not {sanitize_line(own_model or '')} of its own settings"
            streams.print_message(f"{self._setup.name} uses {target.name}{other}")
            if choice.is_emulated and not emulated:
                streams.print_message(EMULATED_NOTE)
            with server.running():
                return self._run_client(launch)

    def _adapt(self, routes: GatewayRoutes) -> GatewayRoutes:
        """Return the routes for this client, with one client key: only this client can use the gateway."""
        from segue.gateway.client_keys import ClientKey, hash_key

        key = ClientKey(self._setup.name, hash_key(self._key))
        return msgspec.structs.replace(routes, clients=(key,), buffer_tool_calls=self._setup.buffer_tool_calls)

    def _prepare(self, server: GatewayServer, target: Endpoint, own_model: str | None, *, prints: bool) -> Launch:
        from segue.sessions.launch import LaunchContext

        context = LaunchContext(server.url, self._key, target.name, self._folder / "files", os.environ)
        if target.context is not None:
            context = msgspec.structs.replace(context, context=target.context)
        launch = self._setup.start(context, own_model)
        newer = self._setup.newer_flags if prints else self._find_supported(self._setup.newer_flags)
        return msgspec.structs.replace(launch, arguments=(*newer, *launch.arguments))

    def _find_supported(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return those flags that are in the help of the installed client."""
        if not flags:
            return ()
        try:
            ended = subprocess.run(
                [self._program, "--help"],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_HELP_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return ()
        return tuple(flag for flag in flags if flag.encode() in ended.stdout.split())

    def _environ(self, launch: Launch) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in launch.removed}
        return {**kept, **launch.variables}

    def _print(self, launch: Launch, model: str, *, as_json: bool) -> None:
        """Print how the client is started. The key works only while a gateway runs that was started with it."""
        line = [self._program, *launch.arguments, *self._arguments]
        if as_json:
            value = {"model": model, "variables": dict(launch.variables), "removed": launch.removed, "command": line}
            streams.write(msgspec.json.encode(value), b"\n")
            return
        for name, value in launch.variables.items():
            streams.write(f"export {name}={shlex.quote(value)}\n")
        for name in launch.removed:
            streams.write(f"unset {name}\n")
        streams.write(f"{shlex.join(line)}\n")

    def _run_client(self, launch: Launch) -> int:
        """Run the client in the foreground. It gets the terminal's signals itself; others are passed on."""
        for folder in launch.folders:
            folder.mkdir(parents=True, exist_ok=True)
        line = [self._program, *launch.arguments, *self._arguments]
        with run_child(line, env=self._environ(launch)) as process:
            previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
            for number in (signal.SIGTERM, signal.SIGHUP):
                previous[number] = signal.signal(number, lambda received, _frame: process.send_signal(received))
            try:
                code = process.wait()
            finally:
                for number, handler in previous.items():
                    signal.signal(number, handler)
        return code if code >= 0 else 128 - code


def _prepare_base() -> Path:
    """Return the folder of the temporary ones.

    It is not the system's temporary folder: some clients refuse settings in a folder that others can write to.
    """
    base = user_cache_path("segue", appauthor=False)
    make_folder(base)
    _remove_abandoned(base)
    return base


def _remove_abandoned(base: Path) -> None:
    """Remove the temporary folders of runs that were killed."""
    from segue.store.ids import has_ended

    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            if has_ended((folder / _OWNER).read_text()):
                shutil.rmtree(folder, ignore_errors=True)

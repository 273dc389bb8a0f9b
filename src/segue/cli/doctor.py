"""`segue doctor`: checks the setup, and with --online which providers accept their keys.

Each check gives a row of text and a JSON value. A failing check does not stop the next ones.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata, util
from typing import TYPE_CHECKING, Any, Literal

import click

from segue.cli import config, options, streams, user_store
from segue.cli.table import Column, write_table
from segue.errors import SegueError, format_count

if TYPE_CHECKING:
    from segue.bridge.providers import Endpoint, Provider
    from segue.cli.providers import Providers
    from segue.runtime.provider_client import ProbeResult


_State = Literal["ok", "note", "bad"]
_MARKS: dict[_State, str] = {"ok": "ok", "note": "--", "bad": "!!"}
_STYLES: dict[_State, str] = {"ok": "green", "note": "dim", "bad": "bold red"}
_MAX_COUNTED = 10_000
_EXTRAS = {"postgres": "psycopg", "mcp": "mcp", "keyring": "keyring", "socks": "aiohttp_socks"}


@options.command("doctor")
@click.option("--online", is_flag=True, help="Verify the keys that are set with a request to each provider.")
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml for this run.")
@click.pass_context
def command(ctx: click.Context, *, online: bool, trusting: bool, as_json: bool) -> None:
    """Check configuration, store, keys, MCP servers and terminal.

    Nothing is sent, except with --online, which requests the list of models from each provider whose key is set. No
    program is started but bwrap, to test the sandbox. Keys are never shown. Exit code 1: a problem was found, marked
    with !!.
    """
    checks = _DoctorChecks(trusting=trusting)
    checks.run(online=online)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(checks.results), b"\n")
    else:
        rows = [((_STYLES[state], _MARKS[state]), name, text) for state, name, text in checks.rows]
        write_table([Column(), Column(), Column(wraps=True)], rows)
    ctx.exit(0 if checks.results["ok"] else 1)


class _DoctorChecks:
    def __init__(self, *, trusting: bool = False) -> None:
        self.rows: list[tuple[_State, str, str]] = []
        self.results: dict[str, Any] = {"ok": True}
        self._trusting = trusting
        self._catalogue: Providers | None = None

    def run(self, *, online: bool = False) -> None:
        self._check_versions()
        if not streams.has_working_folder():
            self._add_row("bad", "folder", streams.FOLDER_GONE)
        self._check_config()
        self._check_store()
        self._check_providers(online=online)
        self._check_model()
        self._check_servers()
        self._check_sandbox()
        self._check_terminal()

    def _add_row(self, state: _State, name: str, text: str) -> None:
        self.rows.append((state, name, text))
        if state == "bad":
            self.results["ok"] = False

    # ---------------------------------------------------------------------------------------------------------- setup

    def _check_versions(self) -> None:
        version, python = metadata.version("segue"), platform.python_version()
        extras = {name: util.find_spec(module) is not None for name, module in _EXTRAS.items()}
        self.results |= {"segue": version, "python": python, "platform": platform.platform(), "extras": extras}
        self._add_row("ok", "segue", f"{version}, Python {python} on {platform.system()} {platform.machine()}")
        missing = [name for name, installed in extras.items() if not installed]
        if missing:
            self._add_row(
                "note", "extras", f"not installed: {', '.join(missing)}; pip install 'segue[{','.join(missing)}]'"
            )

    def _check_config(self) -> None:
        from segue.cli.agent_tools import validate_rules
        from segue.cli.providers import Providers

        rows: list[dict[str, Any]] = []
        self.results["config"] = rows
        for file in filter(None, (config.project_file(), config.user_file())):
            if not file.is_file():
                self._add_row("note", "config", f"{file}: does not exist")
                continue
            try:
                source = config.load_file(file, trusting=self._trusting)
            except click.ClickException as error:
                rows.append({"file": str(file), "error": error.message})
                self._add_row("bad", "config", error.message)
                continue
            rows.append({"file": str(file), "trusted": source.is_trusted, "withheld": source.ignored})
            if source.is_trusted:
                self._add_row("ok", "config", str(file))
            else:
                ignored = ", ".join(source.ignored)
                self._add_row(
                    "note", "config", f"{file}: not trusted; ignored settings: {ignored}; run segue trust to trust it"
                )
        try:
            self._catalogue = Providers(config.load(trusting=self._trusting))
            validate_rules(self._catalogue.config)
        except (click.ClickException, SegueError) as error:
            text = error.message if isinstance(error, click.ClickException) else str(error)
            if not any(row.get("error") == text for row in rows):
                self._add_row("bad", "config", text)
        if self._catalogue is not None:
            self._check_stored_keys(self._catalogue)

    def _check_stored_keys(self, catalogue: Providers) -> None:
        """Check the file with the stored keys; go on without it if it can't be read."""
        from segue.cli.key_store import StoredKeys

        try:
            _ = catalogue.stored_keys
        except click.ClickException as error:
            self._add_row("bad", "keys", error.message)
            catalogue.stored_keys = StoredKeys({})

    def _check_store(self) -> None:
        from segue.store import display_location

        result: dict[str, Any] = {}
        self.results["store"] = result
        try:
            result["place"] = location = display_location(user_store.locate(trusting=self._trusting))
            result["exists"] = user_store.exists(trusting=self._trusting)
            if not result["exists"]:
                self._add_row("note", "store", f"{location}: does not exist yet; created with the first conversation")
                return
            with user_store.connect(trusting=self._trusting, quiet=True) as store:
                count = len(store.list(_MAX_COUNTED))
        except (click.ClickException, SegueError) as error:
            result["error"] = error.message if isinstance(error, click.ClickException) else str(error)
            if not any(row.get("error") == result["error"] for row in self.results["config"]):
                self._add_row("bad", "store", result["error"])
            return
        result["conversations"] = count
        more = " or more" if count == _MAX_COUNTED else ""
        self._add_row("ok", "store", f"{location}: {format_count(count, 'conversation')}{more}")

    # ------------------------------------------------------------------------------------------------------ providers

    def _check_providers(self, *, online: bool) -> None:
        rows: list[dict[str, Any]] = []
        self.results["providers"] = rows
        if self._catalogue is None:
            return
        unset: list[str] = []
        endpoints: dict[str, Endpoint] = {}
        for row in self._catalogue.by_name.values():
            result, endpoint = _check_provider(row, self._catalogue)
            rows.append(result)
            if result["key"] is None and row.variables:
                unset.append(row.name)
            elif endpoint is None:
                self._add_row("note" if result["key"] is None else "bad", row.name, result["error"])
            elif online and (row.variables or row.base_url):
                endpoints[row.name] = endpoint
            else:
                self._add_row("ok" if result["key"] else "note", row.name, _format_provider(result))
        if endpoints:
            probes = asyncio.run(_probe_all(endpoints))
            for result in rows:
                if result["provider"] in endpoints:
                    probe = probes[result["provider"]]
                    result["online"] = text = _format_probe(probe)
                    is_optional = result["key"] is None or probe.error is None
                    accepted = probe.accepted and probe.error is None
                    state: _State = "ok" if accepted else "note" if is_optional else "bad"
                    self._add_row(state, result["provider"], f"{_format_provider(result)}: {text}")
        if unset:
            self._add_row("note", "no key", ", ".join(unset))

    def _check_model(self) -> None:
        from segue.cli.model_choice import choose_models

        if self._catalogue is None:
            return
        try:
            choice = choose_models(self._catalogue, required=False)
        except SegueError as error:
            self.results["model"] = {"models": (), "why": str(error)}
            self._add_row("bad", "model", str(error))
            return
        names, why = choice.names, choice.why
        if choice.is_emulated:
            names, why = (), "no API key is set and nothing is configured: emulated models are used"
        self.results["model"] = {"models": names, "why": why}
        for name in names:
            if self._catalogue.lacks_default(name) is not None:
                # The model that the server has is used, and nothing is sent here.
                continue
            try:
                endpoint = self._catalogue.endpoint(name)
            except SegueError as error:
                self._add_row("bad", "model", f"{name} ({why}): {error}")
                return
            if endpoint.lacks_key:
                self._add_row("bad", "model", f"{name} ({why}): no key; set {endpoint.variables[0]}")
                return
        state: _State = "ok" if names else "note" if choice.is_emulated else "bad"
        self._add_row(state, "model", f"{', '.join(names)} ({why})" if names else why)

    # ----------------------------------------------------------------------------------------------- MCP and terminal

    def _check_servers(self) -> None:
        rows: list[dict[str, Any]] = []
        self.results["mcp"] = rows
        if self._catalogue is None:
            return
        for name, server in self._catalogue.config.settings.mcp.items():
            if server.url is not None:
                rows.append({"name": name, "url": server.url})
                self._add_row("ok", f"mcp {name}", server.url)
                continue
            program = shutil.which(server.program[0])
            rows.append({"name": name, "command": server.program, "found": program})
            if program is None:
                self._add_row("bad", f"mcp {name}", f"program not found: {server.program[0]}")
            else:
                self._add_row("ok", f"mcp {name}", program)

    def _check_sandbox(self) -> None:
        from segue.runtime.tools.shell_sandbox import find_sandbox

        tools = self._catalogue.config.settings.tools if self._catalogue is not None else None
        mode = (tools.sandbox if tools is not None else None) or "on"
        found = (
            "off in the configuration"
            if mode == "off"
            else find_sandbox(user_store.scratch_folder(), has_network=mode == "network")
        )
        works = not isinstance(found, str)
        self.results["sandbox"] = {"works": works, "mode": mode, "why": None if works else found}
        if isinstance(found, str):
            self._add_row("note", "sandbox", f"shell commands run without a sandbox: {found}")
        else:
            self._add_row("ok", "sandbox", f"shell commands run {found.description}")

    def _check_terminal(self) -> None:
        size = shutil.get_terminal_size()
        result = {
            "stdin": streams.is_terminal(sys.stdin),
            "stdout": streams.is_terminal(sys.stdout),
            "colour": streams.supports_colour(),
            "term": os.environ.get("TERM"),
            "columns": size.columns,
            "encoding": getattr(sys.stdout, "encoding", None),
        }
        self.results["terminal"] = result
        if not result["stdout"]:
            self._add_row("note", "terminal", "stdout is not a terminal; segue chat prints plain lines there")
            return
        colour = "colours" if result["colour"] else "no colours"
        self._add_row("ok", "terminal", f"{result['term']}, {size.columns} columns, {colour}, {result['encoding']}")


def _check_provider(row: Provider, providers: Providers) -> tuple[dict[str, Any], Endpoint | None]:
    from segue.bridge.providers import NO_MODEL

    key = providers.key_variable_of(row)
    result: dict[str, Any] = {
        "provider": row.name,
        "key": key,
        "stored": key is not None and providers.is_stored(key),
        "base_url": row.base_url or None,
    }
    try:
        endpoint = providers.endpoint(f"{row.name}/{row.default or NO_MODEL}")
    except SegueError as error:
        return {**result, "error": str(error)}, None
    return {**result, "base_url": endpoint.base_url}, endpoint


def _format_provider(result: Mapping[str, Any]) -> str:
    key = f"{result['key']} is {'stored' if result['stored'] else 'set'}" if result["key"] else "no key needed"
    return f"{key}, {result['base_url']}"


async def _probe_all(endpoints: Mapping[str, Endpoint]) -> dict[str, ProbeResult]:
    """Probe each endpoint by requesting its list of models."""
    from segue.runtime.provider_client import ProviderClient

    async with ProviderClient() as client:
        results = await asyncio.gather(*(client.probe(endpoint) for endpoint in endpoints.values()))
    return dict(zip(endpoints, results, strict=True))


def _format_probe(result: ProbeResult) -> str:
    if result.error is not None:
        return result.error.message if result.error.command == "doctor" else str(result.error)
    return "accepted" if result.accepted else "reached; could not verify the key"

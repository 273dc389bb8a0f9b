"""The checks of `segue doctor`: each result as a row of text and as a JSON value."""

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

from segue.cli import config, stored, streams
from segue.cli.equipment import check_rules
from segue.cli.known import Known
from segue.errors import SegueError

if TYPE_CHECKING:
    from segue.runtime.providers import Endpoint, Provider
    from segue.runtime.upstream import Probed

__all__ = ["Examination"]

State = Literal["ok", "note", "bad"]
_COUNTED = 10_000


class Examination:
    """Runs all checks; a failing check does not stop the next ones."""

    def __init__(self, *, trusting: bool = False) -> None:
        self.rows: list[tuple[str, str, str]] = []
        self.told: dict[str, Any] = {"ok": True}
        self._trusting = trusting
        self._known: Known | None = None

    def all(self, *, online: bool = False) -> None:
        self._versions()
        if not streams.in_a_folder():
            self._row("bad", "folder", streams.NO_FOLDER)
        self._config()
        self._store()
        self._providers(online=online)
        self._model()
        self._servers()
        self._terminal()

    def _row(self, state: State, name: str, words: str) -> None:
        self.rows.append((state, name, words))
        if state == "bad":
            self.told["ok"] = False

    # ---------------------------------------------------------------------------------------------------------- setup

    def _versions(self) -> None:
        version, python = metadata.version("segue"), platform.python_version()
        extras = {
            name: util.find_spec(module) is not None for name, module in (("postgres", "psycopg"), ("mcp", "mcp"))
        }
        self.told |= {"segue": version, "python": python, "platform": platform.platform(), "extras": extras}
        self._row("ok", "segue", f"{version}, Python {python} on {platform.system()} {platform.machine()}")
        missing = [name for name, installed in extras.items() if not installed]
        if missing:
            self._row(
                "note", "extras", f"not installed: {', '.join(missing)}; pip install 'segue[{','.join(missing)}]'"
            )

    def _config(self) -> None:
        rows: list[dict[str, Any]] = []
        self.told["config"] = rows
        for file in filter(None, (config.project_file(), config.user_file())):
            if not file.is_file():
                self._row("note", "config", f"{file}: does not exist")
                continue
            try:
                source = config.source(file, trusting=self._trusting)
            except click.ClickException as error:
                rows.append({"file": str(file), "error": error.message})
                self._row("bad", "config", error.message)
                continue
            rows.append({"file": str(file), "trusted": source.trusted, "withheld": source.withheld})
            if source.trusted:
                self._row("ok", "config", str(file))
            else:
                ignored = ", ".join(source.withheld)
                self._row(
                    "note", "config", f"{file}: not trusted; ignored settings: {ignored}; run segue trust to trust it"
                )
        try:
            self._known = Known(config.load(trusting=self._trusting))
            check_rules(self._known.config)
        except (click.ClickException, SegueError) as error:
            text = error.message if isinstance(error, click.ClickException) else str(error)
            if not any(row.get("error") == text for row in rows):
                self._row("bad", "config", text)

    def _store(self) -> None:
        from segue.store import shown

        result: dict[str, Any] = {}
        self.told["store"] = result
        try:
            result["place"] = location = shown(stored.place(trusting=self._trusting))
            result["exists"] = stored.is_there(trusting=self._trusting)
            if not result["exists"]:
                self._row("note", "store", f"{location}: does not exist yet; created with the first conversation")
                return
            with stored.opened(trusting=self._trusting, told=True) as store:
                count = len(store.list(_COUNTED))
        except (click.ClickException, SegueError) as error:
            result["error"] = error.message if isinstance(error, click.ClickException) else str(error)
            if not any(row.get("error") == result["error"] for row in self.told["config"]):
                self._row("bad", "store", result["error"])
            return
        result["conversations"] = count
        more = " or more" if count == _COUNTED else ""
        self._row("ok", "store", f"{location}: {count:,}{more} conversation{'' if count == 1 else 's'}")

    # ------------------------------------------------------------------------------------------------------ providers

    def _providers(self, *, online: bool) -> None:
        rows: list[dict[str, Any]] = []
        self.told["providers"] = rows
        if self._known is None:
            return
        unset: list[str] = []
        endpoints: dict[str, Endpoint] = {}
        for row in self._known.providers.values():
            result, endpoint = _examined(row, self._known)
            rows.append(result)
            if result["key"] is None and row.variables:
                unset.append(row.name)
            elif endpoint is None:
                self._row("note" if result["key"] is None else "bad", row.name, result["error"])
            elif online and (row.variables or row.base_url):
                endpoints[row.name] = endpoint
            else:
                self._row("ok" if result["key"] else "note", row.name, _words(result))
        if endpoints:
            answers = asyncio.run(_reached(endpoints))
            for result in rows:
                if result["provider"] in endpoints:
                    result["online"] = answer = answers[result["provider"]]
                    keyless = result["key"] is None
                    state: State = (
                        "ok" if answer == "accepted" else "note" if keyless or answer.startswith("reached") else "bad"
                    )
                    self._row(state, result["provider"], f"{_words(result)}: {answer}")
        if unset:
            self._row("note", "no key", ", ".join(unset))

    def _model(self) -> None:
        if self._known is None:
            return
        settings = self._known.config.settings
        if settings.route == "rules":
            names, why = tuple(name for rule in settings.rules for name in rule.chosen), "by rules"
        elif settings.chosen:
            names, why = settings.chosen, self._known.config.chosen_by()
        elif (first := self._known.first()) is not None:
            names, why = (first.name,), f"{self._known.key_of(self._known.providers[first.provider])} is set"
        else:
            names, why = (), "no API key is set and no model is configured: emulated models are used"
        self.told["model"] = {"models": names, "why": why}
        for name in names:
            try:
                endpoint = self._known.endpoint(name)
            except SegueError as error:
                self._row("bad", "model", f"{name} ({why}): {error}")
                return
            if endpoint.lacks_key:
                self._row("bad", "model", f"{name} ({why}): no key; set {endpoint.variables[0]}")
                return
        self._row("ok" if names else "note", "model", f"{', '.join(names)} ({why})" if names else why)

    # ----------------------------------------------------------------------------------------------- MCP and terminal

    def _servers(self) -> None:
        rows: list[dict[str, Any]] = []
        self.told["mcp"] = rows
        if self._known is None:
            return
        for name, server in self._known.config.settings.mcp.items():
            if server.url is not None:
                rows.append({"name": name, "url": server.url})
                self._row("ok", f"mcp {name}", server.url)
                continue
            program = shutil.which(server.program[0])
            rows.append({"name": name, "command": server.program, "found": program})
            if program is None:
                self._row("bad", f"mcp {name}", f"program not found: {server.program[0]}")
            else:
                self._row("ok", f"mcp {name}", program)

    def _terminal(self) -> None:
        size = shutil.get_terminal_size()
        result = {
            "stdin": streams.on_terminal(sys.stdin),
            "stdout": streams.on_terminal(sys.stdout),
            "colour": streams.coloured(),
            "term": os.environ.get("TERM"),
            "columns": size.columns,
            "encoding": getattr(sys.stdout, "encoding", None),
        }
        self.told["terminal"] = result
        if not result["stdout"]:
            self._row("note", "terminal", "stdout is not a terminal; segue chat prints plain lines there")
            return
        colour = "colours" if result["colour"] else "no colours"
        self._row("ok", "terminal", f"{result['term']}, {size.columns} columns, {colour}, {result['encoding']}")


def _examined(row: Provider, providers: Known) -> tuple[dict[str, Any], Endpoint | None]:
    result: dict[str, Any] = {"provider": row.name, "key": providers.key_of(row), "base_url": row.base_url or None}
    try:
        endpoint = providers.endpoint(f"{row.name}/{row.default or '-'}")
    except SegueError as error:
        return {**result, "error": str(error)}, None
    return {**result, "base_url": endpoint.base_url}, endpoint


def _words(result: Mapping[str, Any]) -> str:
    key = f"{result['key']} is set" if result["key"] else "no key needed"
    return f"{key}, {result['base_url']}"


async def _reached(endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """Probe each endpoint by requesting its list of models."""
    from segue.runtime.upstream import Upstream

    async with Upstream() as upstream:
        answers = await asyncio.gather(*(upstream.probe(endpoint) for endpoint in endpoints.values()))
    return {name: _came(probed) for name, probed in zip(endpoints, answers, strict=True)}


def _came(result: Probed) -> str:
    from segue.runtime.faults import TESTED

    if result.error is not None:
        # Drop the hint to run segue doctor.
        return str(result.error).removesuffix(TESTED).rstrip("; ")
    return "accepted" if result.accepted else "reached; could not verify the key"

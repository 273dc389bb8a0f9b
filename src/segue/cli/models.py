"""`segue models`: lists providers, keys and models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completers, options, streams
from segue.cli.table import Column, format_table, rows_to_ansi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segue.bridge.listings import ModelEntry
    from segue.bridge.providers import Model, Provider
    from segue.cli.providers import Providers
    from segue.errors import SegueError


@options.command("models")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completers.providers)
@click.option("--with-key", is_flag=True, help="Only providers whose key is set.")
@click.option("--online", is_flag=True, help="Request the lists of models from the providers and servers.")
def command(name: str | None, *, with_key: bool, online: bool, as_json: bool) -> None:
    """List providers and keys, or the models of a provider.

    NAME is a provider or an API, or a part of model names. A model is named PROVIDER/MODEL; models that are not listed
    can be used too, and your own providers are defined in the configuration. Prices are in dollars per million tokens
    of input and output. Keys are never shown, and nothing is sent except with --online.

    \b
      segue models
      segue models anthropic
      segue models sonnet
      segue models ollama --online
    """
    from segue.cli import providers
    from segue.cli.model_choice import choose_models

    loaded = providers.load()
    rows = [row for row in loaded.by_name.values() if not with_key or loaded.key_variable_of(row)]
    found = loaded.find_provider(name) if name is not None else None
    if found is not None:
        rows = [row for row in rows if row is found]
    if online:
        _list_online(rows, loaded, name if found is None else None, is_single=found is not None, as_json=as_json)
        return
    if name is not None and found is None:
        rows = [narrowed for row in rows if (narrowed := _narrow(row, name)).models]
    if name is not None and not rows:
        raise streams.BadInputError(f"no provider or model matches '{name}'; providers: {', '.join(loaded.by_name)}")
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode([_provider_fields(row, loaded) for row in rows]), b"\n")
        return
    if name is None:
        streams.write(_format_providers(rows, loaded))
    else:
        streams.write(*(_format_models(row, loaded) for row in rows))
        if found is not None and not found.models:
            streams.print_message(f"segue models {found.name} --online lists the models that {found.name} has")
    if not loaded.config.settings.model_names and choose_models(loaded, required=False).is_emulated:
        streams.print_message("no API key is set and nothing is configured: emulated models are used")


def _narrow(row: Provider, text: str) -> Provider:
    """Return the provider with only those models whose names contain a text."""
    import msgspec

    models = {name: model for name, model in row.models.items() if text.lower() in name.lower()}
    return msgspec.structs.replace(row, models=models)


def _provider_fields(row: Provider, providers: Providers) -> dict[str, Any]:
    return {
        "provider": row.name,
        "title": row.title,
        "api": row.api,
        "key": providers.key_variable_of(row),
        "variables": list(row.variables),
        "default": row.default or None,
        "models": {name: _model_fields(row, name, model, providers) for name, model in row.models.items()},
    }


def _model_fields(row: Provider, name: str, model: Model, providers: Providers) -> dict[str, Any]:
    tiers = providers.find_tiers(row.name, name)
    prices = tiers[0][1]._asdict() if tiers is not None else None
    return {"context": model.context, "max_output": model.max_output, "prices": prices}


def _format_models(row: Provider, providers: Providers) -> str:
    cells: list[tuple[str, ...]] = []
    for name, model in row.models.items():
        fields = _model_fields(row, name, model, providers)
        prices = fields["prices"]
        cells.append(
            (
                f"{row.name}/{name}",
                f"{model.context:,} tokens" if model.context else "",
                f"${prices['input']:g} / ${prices['output']:g}" if prices else "",
                "(default)" if name == row.default else "",
            )
        )
    return _align(cells)


def _align(cells: list[tuple[str, ...]]) -> str:
    """Format rows as columns; the second one is aligned to the right. Empty columns are left out."""
    used = [at for at in range(len(cells[0])) if any(row[at] for row in cells)] if cells else []
    columns = [Column(is_right=at == 1) for at in range(len(used))]
    return rows_to_ansi(format_table(columns, [[row[at] for at in used] for row in cells]))


# -------------------------------------------------------------------------------------------------------------- online


def _list_online(rows: list[Provider], loaded: Providers, text: str | None, *, is_single: bool, as_json: bool) -> None:
    """List the models that the providers have; without a name, those of providers with a key, and of local servers."""
    lists, errors = asyncio.run(_fetch_lists(rows, loaded, is_single=is_single))
    lists = {
        name: [entry for entry in entries if text is None or text.lower() in entry.name.lower()]
        for name, entries in lists.items()
    }
    if is_single and errors:
        raise next(iter(errors.values()))
    if text is not None and not any(lists.values()):
        raise streams.BadInputError(f"no model matches '{text}'; providers requested: {', '.join(lists) or 'none'}")
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(lists), b"\n")
    else:
        cells = [
            (f"{name}/{entry.name}", f"{entry.context:,} tokens" if entry.context else "")
            for name, entries in lists.items()
            for entry in entries
        ]
        streams.write(_align(cells))
    for error in errors.values():
        streams.print_message(str(error))
    if is_single and not any(lists.values()):
        streams.print_message("the list of models is empty")


async def _fetch_lists(
    rows: list[Provider], loaded: Providers, *, is_single: bool
) -> tuple[dict[str, Sequence[ModelEntry]], dict[str, SegueError]]:
    """Request the lists at the same time. Servers without a key that are not reached are left out, unless named."""
    from segue.bridge.providers import NO_MODEL
    from segue.errors import SegueError
    from segue.runtime.provider_client import ProviderClient

    async def fetch(client: ProviderClient, row: Provider) -> Sequence[ModelEntry] | SegueError:
        try:
            return await client.list_models(loaded.endpoint(f"{row.name}/{row.default or NO_MODEL}"))
        except SegueError as error:
            return error

    requested = [row for row in rows if is_single or loaded.key_variable_of(row) or not row.variables]
    async with ProviderClient() as client:
        results = await asyncio.gather(*(fetch(client, row) for row in requested))
    found = dict(zip((row.name for row in requested), results, strict=True))
    errors = {name: result for name, result in found.items() if isinstance(result, SegueError)}
    needed = {row.name for row in requested if row.variables or is_single}
    lists = {name: result for name, result in found.items() if not isinstance(result, SegueError)}
    return lists, {name: error for name, error in errors.items() if name in needed}


# ----------------------------------------------------------------------------------------------------------- providers


def _format_providers(rows: list[Provider], providers: Providers) -> str:
    columns = [Column("provider", "cyan"), *map(Column, ("key", "default model", "models", "title"))]
    cells = [
        (
            row.name,
            ("green" if providers.key_variable_of(row) else "dim", _format_key(row, providers)),
            row.default or "-",
            str(len(row.models)),
            row.title,
        )
        for row in rows
    ]
    return rows_to_ansi(format_table(columns, cells))


def _format_key(row: Provider, providers: Providers) -> str:
    if not row.variables:
        return "none needed"
    variable = providers.key_variable_of(row)
    if variable is None:
        return f"unset: {row.variables[0]}"
    return f"stored: {variable}" if providers.is_stored(variable) else f"set: {variable}"

"""`segue models`: lists providers, keys and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.bridge.providers import Provider
    from segue.cli.providers import Providers


@options.command("models")
@click.argument("provider", required=False, metavar="[PROVIDER]")
@click.option("--with-key", is_flag=True, help="Only providers whose key is set.")
def command(provider: str | None, *, with_key: bool, as_json: bool) -> None:
    """List providers and keys, or the models of PROVIDER.

    A model is named PROVIDER/MODEL. Models that are not listed can be used too; your own providers are defined in the
    configuration. Keys are never shown, and nothing is sent.

    \b
      segue models
      segue models anthropic
    """
    from segue.cli import providers

    loaded = providers.load()
    rows = [row for row in loaded.by_name.values() if not with_key or loaded.key_variable_of(row)]
    if provider is not None:
        rows = [row for row in rows if provider.lower() in (row.name, *row.aliases)]
        if not rows:
            raise streams.BadInputError(f"unknown provider '{provider}'; expected one of {', '.join(loaded.by_name)}")
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode([_provider_fields(row, loaded) for row in rows]), b"\n")
        return
    streams.write(_format_models(rows[0]) if provider is not None else _format_providers(rows, loaded))
    for row in rows:
        if note := loaded.describe_assumed_api(row.name):
            streams.print_message(note)
    if not any(map(loaded.key_variable_of, loaded.by_name.values())):
        streams.print_message("no API key is set: segue run and segue chat use emulated models")


def _provider_fields(row: Provider, providers: Providers) -> dict[str, Any]:
    return {
        "provider": row.name,
        "title": row.title,
        "api": row.api,
        "key": providers.key_variable_of(row),
        "variables": list(row.variables),
        "default": row.default or None,
        "models": {name: {"context": model.context} for name, model in row.models.items()},
    }


def _format_models(row: Provider) -> str:
    width = max((len(name) for name in row.models), default=0)
    lines = (
        f"{row.name}/{name:{width}}  {f'{model.context:>9,} tokens' if model.context else ''}".rstrip()
        + ("  (default)" if name == row.default else "")
        for name, model in row.models.items()
    )
    return "".join(f"{line}\n" for line in lines)


def _format_providers(rows: list[Provider], providers: Providers) -> str:
    headers = ("provider", "key", "default model", "models", "title")
    cells = [
        (row.name, _format_key(row, providers), row.default or "-", str(len(row.models)), row.title) for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    colour = streams.supports_colour()
    lines: list[str] = []
    for number, row in enumerate((headers, *cells)):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if colour:
            is_set = number and providers.key_variable_of(rows[number - 1])
            styles: tuple[dict[str, Any], ...] = (
                {"fg": "cyan"},
                {"fg": "green"} if is_set else {"dim": True},
                {},
                {},
                {},
            )
            padded = [
                click.style(cell, **(style if number else {"dim": True}))
                for cell, style in zip(padded, styles, strict=True)
            ]
        lines.append("  ".join(padded).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _format_key(row: Provider, providers: Providers) -> str:
    if not row.variables:
        return "none needed"
    variable = providers.key_variable_of(row)
    return f"set: {variable}" if variable else f"unset: {row.variables[0]}"

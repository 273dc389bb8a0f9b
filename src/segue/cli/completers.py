"""Shell completion of option values. It never creates or sends anything, and errors give no values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

_Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_MAX_IDS = 50


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete file names itself."""
    return [CompletionItem(incomplete, type="file")]


def _make_completer(values: Callable[[], Iterable[tuple[str, str]]]) -> _Completer:
    """Return a completer over (value, help) pairs."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [
                CompletionItem(value, help=about or None) for value, about in values() if value.startswith(incomplete)
            ]
        except Exception:  # noqa: BLE001  a message would garble the line being typed
            return []

    return complete


def _list_ids() -> Iterable[tuple[str, str]]:
    from segue.cli import user_store
    from segue.view.format import shorten
    from segue.view.sanitize import sanitize_line

    if not user_store.exists():
        return []
    with user_store.connect(quiet=True) as store:
        rows = store.list(_MAX_IDS)
    return [(row.id, shorten(sanitize_line(row.title or row.opening or ""), 50)) for row in rows]


def _list_models() -> Iterable[tuple[str, str]]:
    from segue.cli import providers

    loaded = providers.load()
    aliases = [(name, model) for name, model in loaded.config.settings.aliases.items()]
    models = [
        (f"{row.name}/{model}", row.title)
        for row in loaded.by_name.values()
        for model in dict.fromkeys((*row.models, *([row.default] if row.default else ())))
    ]
    return [*aliases, *models]


def _list_providers() -> Iterable[tuple[str, str]]:
    from segue.cli import providers

    return [(row.name, row.title) for row in providers.load().by_name.values()]


def _list_tool_formats() -> Iterable[tuple[str, str]]:
    import segue

    rows = segue.formats()
    names = dict.fromkeys(row.tool_format for row in rows if row.tool_format)
    return [("auto", "chosen by model"), *((name, "") for name in names)]


def _list_profiles() -> Iterable[tuple[str, str]]:
    from segue.wire.registry import SERVERS

    return [(name, "") for name in sorted(SERVERS)]


ids = _make_completer(_list_ids)
models = _make_completer(_list_models)
providers = _make_completer(_list_providers)
tool_formats = _make_completer(_list_tool_formats)
profiles = _make_completer(_list_profiles)

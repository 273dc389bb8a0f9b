"""Shell completion of option values. It never creates or sends anything, and errors give no values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

__all__ = ["Completer", "files", "ids", "models", "profiles", "tool_formats"]

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_NEWEST = 50


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes file names itself."""
    return [CompletionItem(incomplete, type="file")]


def _of(values: Callable[[], Iterable[tuple[str, str]]]) -> Completer:
    """A completer over (value, help) pairs."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [
                CompletionItem(value, help=about or None) for value, about in values() if value.startswith(incomplete)
            ]
        except Exception:  # noqa: BLE001  a message would garble the line being typed
            return []

    return complete


def _ids() -> Iterable[tuple[str, str]]:
    from segue.cli import stored
    from segue.view.clean import harmless_line
    from segue.view.words import shortened

    if not stored.is_there():
        return []
    with stored.opened(told=True) as store:
        rows = store.list(_NEWEST)
    return [(row.id, shortened(harmless_line(row.title or row.opening or ""), 50)) for row in rows]


def _models() -> Iterable[tuple[str, str]]:
    from segue.cli import known

    return [(f"{row.name}/{model}", row.title) for row in known.load().providers.values() for model in row.models]


def _tool_formats() -> Iterable[tuple[str, str]]:
    import segue

    rows = segue.formats()
    names = dict.fromkeys(row.tool_format for row in rows if row.tool_format)
    return [("auto", "chosen by model"), *((name, "") for name in names)]


def _profiles() -> Iterable[tuple[str, str]]:
    from segue.conformance import profile_names

    return [(name, "") for name in profile_names()]


ids = _of(_ids)
models = _of(_models)
tool_formats = _of(_tool_formats)
profiles = _of(_profiles)

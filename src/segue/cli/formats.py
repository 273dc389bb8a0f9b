"""`segue formats`: the registry of APIs and tool formats as a table."""

from __future__ import annotations

from collections.abc import Sequence

from segue.cli import options, streams

_COLUMNS = ("name", "kind", "on", "provider", "default_model", "tool_format", "title")
_HEADS = tuple(column.replace("_", " ") for column in _COLUMNS)


@options.command("formats")
def command(*, as_json: bool) -> None:
    """List the APIs that segue speaks, and what holds for each when nothing else is said."""
    import segue

    rows: list[dict[str, str | None]] = [{name: getattr(row, name) for name in _COLUMNS} for row in segue.formats()]
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(rows), b"\n")
        return
    cells = [[value or "-" for value in row.values()] for row in rows]
    streams.write(_coloured(cells) if streams.coloured() else _plain(cells))


def _plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEADS, *rows))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _coloured(rows: Sequence[Sequence[str]]) -> str:
    from rich.table import Table

    from segue.cli.screen import Screen

    table = Table(box=None, header_style="dim", pad_edge=False)
    for head, style in zip(_HEADS, ("bold cyan", "", "", "", "", "", "dim"), strict=True):
        table.add_column(head, style=style, no_wrap=head != "title")
    for row in rows:
        table.add_row(*row)
    return Screen(widest=160).render(table)

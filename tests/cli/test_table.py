"""Tables of commands and of the chat: aligned by display width, narrowed to the terminal, with plain characters."""

from __future__ import annotations

import pytest

from segue.cli.table import Column, Row, format_table, rows_to_ansi
from segue.view.fit import display_width

COLUMNS = (
    Column("id", "cyan"),
    Column("nr", is_right=True, drops=2),
    Column("folder", "dim", narrows=True, drops=1),
    Column("title"),
)
ROWS = [
    ("1nfm", "1", "~/a/long/path/to/some/project", "Buy bread"),
    ("1nfx", "1,200", "~/東京/プロジェクト", "東京 weather \x1b[31m in\nthe morning, and what else there is to do"),
]


def texts(rows: list[Row]) -> list[str]:
    return ["".join(text for _, text in row) for row in rows]


def test_columns_are_aligned_by_the_width_of_their_characters() -> None:
    lines = texts(format_table(COLUMNS, ROWS))
    starts = {
        display_width(line[: line.index(title)]) for line, title in zip(lines, ("title", "Buy", "東京 w"), strict=True)
    }
    assert len(starts) == 1
    assert [line[:11] for line in lines] == ["id       nr", "1nfm      1", "1nfx  1,200"]


@pytest.mark.parametrize("width", [120, 80, 60, 40, 30, 20, 10])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = texts(format_table(COLUMNS, ROWS, width))
    assert all(display_width(line) <= width for line in lines), lines
    assert all(line.startswith(id) for line, id in zip(lines, ("id", "1nfm", "1nfx"), strict=True))
    assert ("folder" in lines[0], "nr" in lines[0]) == (width >= 40, width > 20)


def test_cells_have_no_control_characters_and_their_styles() -> None:
    rows = format_table(COLUMNS, [(("bold red", "a\x1b[0m"), "", "", "b")])
    assert "\x1b" not in "".join(texts(rows))
    assert rows_to_ansi(rows, colour=True).splitlines()[1].startswith("\x1b[31m\x1b[1ma")
    assert "\x1b" not in rows_to_ansi(rows, colour=False)

"""Terminal output as SVG: an animated recording, or a picture of panels. Rows are those of `segue.cli.table`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from segue.cli.table import Row
from segue.view.fit import display_width

RECORDING_COLUMNS, PANEL_COLUMNS = 100, 120
_CELL_WIDTH, _CELL_HEIGHT, _FONT_SIZE = 8.4, 19, 14
_MARGIN, _TITLE_BAR = 16, 34
_SCENE_SECONDS, _LAST_SCENE_SECONDS = 0.35, 12.0
"""How long each scene and the last one are shown."""
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_TEXT_RULE = f"text{{font-family:{_FONT};font-size:{_FONT_SIZE}px;white-space:pre}}"
_RED, _GREEN = "#f85149", "#3fb950"
_FOREGROUND, _BACKGROUND = "#d9d9d9", "#0c0c0c"
_COLOURS = {"red": _RED, "green": _GREEN, "cyan": "#66d9ef", "yellow": "#fd971f", "blue": "#9d65ff"} | {
    "magenta": "#f4005f",
    "white": "#c4c5b5",
    "brown": "#fd971f",
    "black": "#1a1a1a",
}
"""Colours by name; others are written as `#rrggbb`."""


class Panel(NamedTuple):
    """A titled box of lines, green where `accepted`, else red."""

    title: str
    lines: Sequence[Row]
    accepted: bool


def render_recording(scenes: Sequence[Sequence[Row]], *, title: str = "segue demo") -> str:
    """Render the scenes, which appear one after the other, as an SVG that loops; a single scene does not move."""
    length = _SCENE_SECONDS * (len(scenes) - 1) + _LAST_SCENE_SECONDS
    rules: list[str] = []
    groups: list[str] = []
    row = 0
    for number, page in enumerate(scenes):
        if number:
            start = 100 * number * _SCENE_SECONDS / length
            rules.append(f"@keyframes s{number}{{0%{{visibility:hidden}}{start:.2f}%{{visibility:visible}}}}")
            rules.append(f".s{number}{{animation:s{number} {length:.1f}s step-end infinite}}")
        groups.append(f'<g class="s{number}">{_draw_lines(page, row)}</g>')
        row += len(page)
    dots = "".join(
        f'<circle cx="{_MARGIN + 6 + 20 * place}" cy="17" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    height = _CELL_HEIGHT * row + _TITLE_BAR + _MARGIN
    content = f'{dots}<g transform="translate({_MARGIN} {_TITLE_BAR})">{"".join(groups)}</g>'
    width = _CELL_WIDTH * RECORDING_COLUMNS + 2 * _MARGIN
    return _render_picture(title, width, height, content, "".join(rules))


def render_panels(panels: Sequence[Panel], *, title: str) -> str:
    """Render the panels below each other as an SVG that does not move."""
    drawn: list[str] = []
    width = _CELL_WIDTH * PANEL_COLUMNS + 2 * _MARGIN
    top = _MARGIN
    for panel in panels:
        rows = [line for row in panel.lines for line in _wrap(row)]
        colour = _GREEN if panel.accepted else _RED
        height = _CELL_HEIGHT * (len(rows) + 1) + 2 * _MARGIN
        box = f'width="{width:.0f}" height="{height}" rx="6" fill="{colour}" fill-opacity="0.08"'
        heading = _draw_lines([[(f"bold {colour}", panel.title)]], 0)
        drawn.append(
            f'<g transform="translate({_MARGIN} {top})"><rect {box} stroke="{colour}"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN - 4})">{heading}'
            f'<g transform="translate(0 8)">{_draw_lines(rows, 1)}</g></g></g>'
        )
        top += height + _MARGIN
    return _render_picture(title, width + 2 * _MARGIN, top, "".join(drawn))


def _render_picture(title: str, width: float, height: int, content: str, rules: str = "") -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0f} {height}" role="img">'
        f"<title>{escape(title)}</title><style>{_TEXT_RULE}{rules}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>{content}</svg>\n'
    )


def _wrap(row: Row) -> list[Row]:
    """Return a row as rows of the width of a panel."""
    lines: list[Row] = [[]]
    room = PANEL_COLUMNS
    for style, text in row:
        while len(text) > room:
            lines[-1].append((style, text[:room]))
            lines.append([])
            text, room = text[room:], PANEL_COLUMNS
        lines[-1].append((style, text))
        room -= len(text)
    return lines


def _draw_lines(lines: Sequence[Row], first_row: int) -> str:
    return "".join(_draw_line(line, first_row + place) for place, line in enumerate(lines))


def _draw_line(line: Row, row: int) -> str:
    elements: list[str] = []
    column = 0
    for style, text in line:
        width = display_width(text)
        if text.strip():
            position = f'x="{column * _CELL_WIDTH:.1f}" y="{row * _CELL_HEIGHT + _FONT_SIZE}"'
            length = f'textLength="{width * _CELL_WIDTH:.1f}"'
            elements.append(f"<text {position} {length}{_svg_attributes(style)}>{escape(text)}</text>")
        column += width
    return "".join(elements)


def _svg_attributes(style: str) -> str:
    words = style.split()
    colour = next((word for word in words if word not in ("bold", "dim", "italic")), "")
    attributes = f' fill="{_COLOURS.get(colour, colour) or _FOREGROUND}"'
    attributes += ' opacity="0.6"' if "dim" in words else ""
    attributes += ' font-weight="bold"' if "bold" in words else ""
    return attributes + (' font-style="italic"' if "italic" in words else "")

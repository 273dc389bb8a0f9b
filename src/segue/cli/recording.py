"""Terminal output as SVG: an animated recording, or a picture of panels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

_RECORDING_COLUMNS, _PANEL_COLUMNS = 100, 120
_CELL_WIDTH, _CELL_HEIGHT, _FONT_SIZE = 8.4, 19, 14
_MARGIN, _TITLE_BAR = 16, 34
_SCENE_SECONDS, _LAST_SCENE_SECONDS = 0.35, 12.0
"""How long each scene and the last one are shown."""
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_TEXT_RULE = f"text{{font-family:{_FONT};font-size:{_FONT_SIZE}px;white-space:pre}}"
_RED, _GREEN = "#f85149", "#3fb950"
_ANSI = {"red": _RED, "green": _GREEN, "cyan": "#66d9ef"}
"""Colours by name; the rest is the theme's."""


class Panel(NamedTuple):
    """A titled box of lines, green where `accepted`, else red."""

    title: str
    lines: Sequence[RenderableType]
    accepted: bool


def render_recording(scenes: Sequence[RenderableType], *, title: str = "segue demo") -> str:
    """Render the scenes, which appear one after the other, as an SVG that loops; a single scene does not move."""
    pages = [_render_lines(scene, _RECORDING_COLUMNS) for scene in scenes]
    length = _SCENE_SECONDS * (len(pages) - 1) + _LAST_SCENE_SECONDS
    rules: list[str] = []
    groups: list[str] = []
    row = 0
    for number, page in enumerate(pages):
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
    width = _CELL_WIDTH * _RECORDING_COLUMNS + 2 * _MARGIN
    return _render_picture(title, width, height, content, "".join(rules))


def render_panels(panels: Sequence[Panel], *, title: str) -> str:
    """Render the panels below each other as an SVG that does not move."""
    drawn: list[str] = []
    width = _CELL_WIDTH * _PANEL_COLUMNS + 2 * _MARGIN
    top = _MARGIN
    for panel in panels:
        rows = [line for renderable in panel.lines for line in _render_lines(renderable, _PANEL_COLUMNS)]
        colour = _GREEN if panel.accepted else _RED
        height = _CELL_HEIGHT * (len(rows) + 1) + 2 * _MARGIN
        box = f'width="{width:.0f}" height="{height}" rx="6" fill="{colour}" fill-opacity="0.08"'
        heading = _draw_lines(_render_lines(Text(panel.title, f"bold {colour}"), _PANEL_COLUMNS), 0)
        drawn.append(
            f'<g transform="translate({_MARGIN} {top})"><rect {box} stroke="{colour}"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN - 4})">{heading}'
            f'<g transform="translate(0 8)">{_draw_lines(rows, 1)}</g></g></g>'
        )
        top += height + _MARGIN
    return _render_picture(title, width + 2 * _MARGIN, top, "".join(drawn))


def _render_picture(title: str, width: float, height: int, content: str, rules: str = "") -> str:
    background = MONOKAI.background_color.hex
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        f"<title>{escape(title)}</title><style>{_TEXT_RULE}{rules}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>{content}</svg>\n'
    )


def _render_lines(renderable: RenderableType, columns: int) -> list[list[Segment]]:
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system="truecolor", highlight=False)
    return console.render_lines(renderable, pad=False)


def _draw_lines(lines: Sequence[Sequence[Segment]], first_row: int) -> str:
    return "".join(_draw_line(line, first_row + place) for place, line in enumerate(lines))


def _draw_line(segments: Sequence[Segment], row: int) -> str:
    elements: list[str] = []
    column = 0
    for segment in segments:
        if segment.text.strip():
            position = f'x="{column * _CELL_WIDTH:.1f}" y="{row * _CELL_HEIGHT + _FONT_SIZE}"'
            length = f'textLength="{segment.cell_length * _CELL_WIDTH:.1f}"'
            elements.append(f"<text {position} {length}{_svg_attributes(segment.style)}>{escape(segment.text)}</text>")
        column += segment.cell_length
    return "".join(elements)


def _svg_attributes(style: Style | None) -> str:
    style = style or Style()
    attributes = f' fill="{_svg_colour(style)}"'
    attributes += ' opacity="0.6"' if style.dim else ""
    attributes += ' font-weight="bold"' if style.bold else ""
    return attributes + (' font-style="italic"' if style.italic else "")


def _svg_colour(style: Style) -> str:
    if style.color is None:
        return MONOKAI.foreground_color.hex
    return _ANSI.get(style.color.name) or style.color.get_truecolor(MONOKAI).hex

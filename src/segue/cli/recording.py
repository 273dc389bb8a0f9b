"""A terminal recording as an animated SVG: scene after scene, scrolling like a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import MONOKAI

__all__ = ["render_svg"]

_COLUMNS, _ROWS = 100, 34
_CELL_WIDTH, _CELL_HEIGHT, _FONT_SIZE = 8.4, 19, 14
_MARGIN, _TITLE_BAR = 16, 34
_SCENE_SECONDS, _LAST_SCENE_SECONDS = 1.1, 8.0
"""How long each scene and the last one are shown."""


def render_svg(scenes: Sequence[RenderableType]) -> str:
    """Render the scenes as an SVG that loops."""
    console = Console(
        file=io.StringIO(), width=_COLUMNS, force_terminal=True, color_system="truecolor", highlight=False
    )
    pages = [console.render_lines(scene, pad=False) for scene in scenes]
    length = _SCENE_SECONDS * (len(pages) - 1) + _LAST_SCENE_SECONDS
    rules: list[str] = []
    scrolls: list[str] = []
    groups: list[str] = []
    row = 0
    for number, page in enumerate(pages):
        start = 100 * number * _SCENE_SECONDS / length
        first = row
        row += len(page)
        if number:
            rules.append(f"@keyframes s{number}{{0%{{visibility:hidden}}{start:.2f}%{{visibility:visible}}}}")
            rules.append(f".s{number}{{animation:s{number} {length:.1f}s step-end infinite}}")
        scrolls.append(f"{start:.2f}%{{transform:translateY({-_CELL_HEIGHT * max(0, row - _ROWS)}px)}}")
        lines = "".join(_render_line(line, first + place) for place, line in enumerate(page))
        groups.append(f'<g class="s{number}">{lines}</g>')
    rules.append(f"@keyframes page{{{''.join(scrolls)}}}")
    rules.append(f".page{{animation:page {length:.1f}s step-end infinite}}")
    return _render_window("".join(rules), "".join(groups))


def _render_window(rules: str, groups: str) -> str:
    width, height = _CELL_WIDTH * _COLUMNS + 2 * _MARGIN, _CELL_HEIGHT * _ROWS + _TITLE_BAR + _MARGIN
    background = MONOKAI.background_color.hex
    dots = "".join(
        f'<circle cx="{_MARGIN + 6 + 20 * place}" cy="17" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    font = f"text{{font:{_FONT_SIZE}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}"
    screen = (
        f'<svg x="{_MARGIN}" y="{_TITLE_BAR}" width="{_CELL_WIDTH * _COLUMNS:.0f}" height="{_CELL_HEIGHT * _ROWS}">'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        f"<title>segue demo</title><style>{font}{rules}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>{dots}'
        f'{screen}<g class="page">{groups}</g></svg></svg>\n'
    )


def _render_line(segments: Sequence[Segment], row: int) -> str:
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
    colour = style.color.get_truecolor(MONOKAI) if style.color is not None else MONOKAI.foreground_color
    attributes = f' fill="{colour.hex}"'
    attributes += ' opacity="0.6"' if style.dim else ""
    attributes += ' font-weight="bold"' if style.bold else ""
    return attributes + (' font-style="italic"' if style.italic else "")

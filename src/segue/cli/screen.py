"""Renders and prints rich renderables through `streams.write`."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment, Segments

from segue.cli import streams

if TYPE_CHECKING:
    from rich.console import RenderableType


def _strip_trailing_blanks(line: list[Segment]) -> list[Segment]:
    """Remove trailing blanks, styled ones too, so that copied text has none."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
    return kept


class Screen:
    """The width and colours of stdout; without a terminal `max_width` columns and no colour."""

    def __init__(self, *, plain: bool = False, max_width: int = 100) -> None:
        colour = streams.supports_colour() and not plain
        width = min(shutil.get_terminal_size((max_width, 25)).columns, max_width)
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            width=width,
            force_terminal=colour,
            color_system="auto" if colour else None,
            highlight=False,
            soft_wrap=False,
        )

    def render(self, *renderables: RenderableType) -> str:
        """Return the text of renderables, one below the other."""
        for renderable in renderables:
            lines = self._console.render_lines(renderable, pad=False)
            ended = (part for line in lines for part in (*_strip_trailing_blanks(line), Segment.line()))
            self._console.print(Segments(ended), end="")
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text

    def show(self, *renderables: RenderableType) -> None:
        """Print renderables."""
        streams.write(self.render(*renderables))

"""rich on the way to stdout: renderables become text here, and `streams.write` alone writes."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

from rich.console import Console

from segue.cli import streams

if TYPE_CHECKING:
    from rich.console import RenderableType


class Screen:
    """The width and the colours of stdout; without a terminal `widest` columns and no colour."""

    def __init__(self, *, plain: bool = False, widest: int = 100) -> None:
        colour = streams.coloured() and not plain
        width = min(shutil.get_terminal_size((widest, 25)).columns, widest)
        self._page = io.StringIO()
        self._console = Console(
            file=self._page,
            width=width,
            force_terminal=colour,
            color_system="auto" if colour else None,
            highlight=False,
            soft_wrap=False,
        )

    def render(self, *things: RenderableType) -> str:
        """The text of some renderables, one below the other."""
        for thing in things:
            self._console.print(thing)
        text = self._page.getvalue()
        self._page.seek(0)
        self._page.truncate()
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def show(self, *things: RenderableType) -> None:
        """Writes them at once."""
        streams.write(self.render(*things))

"""A terminal output that can buffer a whole frame and write it at once, to avoid flicker."""

from __future__ import annotations

import os
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

__all__ = ["BufferedOutput"]

_SIZE = Size(rows=24, columns=80)


class BufferedOutput(Vt100_Output):
    """A terminal output. While `is_buffering`, a flush does nothing.

    The cursor position is never queried, because the terminal's answer could be taken for typed input.
    """

    def __init__(self, stdout: TextIO, *, coloured: bool) -> None:
        def size() -> Size:
            try:
                columns, rows = os.get_terminal_size(stdout.fileno())
            except (OSError, ValueError):
                return _SIZE
            return Size(rows=rows or _SIZE.rows, columns=columns or _SIZE.columns)

        depth = None if coloured else ColorDepth.DEPTH_1_BIT
        super().__init__(stdout, size, term=os.environ.get("TERM"), default_color_depth=depth, enable_cpr=False)
        self.is_buffering = False

    def flush(self) -> None:
        if not self.is_buffering:
            super().flush()

    def release(self) -> None:
        """Stop buffering and flush."""
        self.is_buffering = False
        self.flush()

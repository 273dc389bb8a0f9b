"""Pictures of a terminal: written as SVG with `SEGUE_SNAPSHOTS=write`, else compared with the committed picture."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

from scripts.svg import render_recording
from segue.cli.table import Row
from tests.cli.terminal_session import TerminalSession

_THOUGHT = re.compile(r"thought for \d+(?:\.\d+)? m?s")
_VARIES = re.compile(
    r"\b1n[0-9a-z]{10}\b|\d+(?:\.\d+)? m?s\b|\d[\d.,]*k?(?= tok| of | \()|\d+ %|\$\d+\.\d+|segue \d[\w.]*"
    r"|<?\d[\d.]* cents?\b|\d+(?= requests?\b)"
)


def compare_screenshot(session: TerminalSession, file: Path, title: str) -> None:
    """Write the picture, or assert that the committed one shows the same words."""
    lines = [_to_row(row) for row in session.styled_lines()]
    while lines and not "".join(text for _, text in lines[-1]).strip():
        lines.pop()
    svg = render_recording([lines], title=title)
    if os.environ.get("SEGUE_SNAPSHOTS") == "write":
        file.write_text(svg, encoding="utf-8")
    assert _words(file.read_text("utf-8")) == _words(svg), f"{file.name} shows another screen: SEGUE_SNAPSHOTS=write"


def _to_row(row: list[tuple[str, str, bool, bool]]) -> Row:
    return [
        (" ".join([*["bold"] * bold, *["italic"] * italic, *([] if colour == "default" else [colour])]), data)
        for data, colour, bold, italic in row
    ]


def _words(svg: str) -> list[str]:
    """Return the words of a picture without ids, times, sizes and versions, which differ from run to run."""
    shown = " ".join(unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    return _VARIES.sub("…", _THOUGHT.sub("thought", shown)).split()

"""Pictures on the clipboard, read with the tool that the desktop has."""

from __future__ import annotations

import shutil
import subprocess

_COMMANDS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_TIMEOUT = 5.0


def read_picture() -> bytes | None:
    """Return the picture on the clipboard as PNG; None if there is none or no tool to read it."""
    for command in _COMMANDS:
        if shutil.which(command[0]) is None:
            continue
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if ended.returncode == 0 and ended.stdout.startswith(b"\x89PNG"):
            return ended.stdout
    return None

"""The command line. One module a command: a new one is a file with a `command` and a row in `shell.COMMANDS`.

Results go to stdout, everything else to stderr. What is slow to import is imported inside the commands.
"""

from __future__ import annotations

from segue.cli.shell import main

__all__ = ["main"]

"""The command line. One module a command: a new one is a file with a `command` and a row in `shell.COMMANDS`.

Results go to stdout, everything else to stderr. What is slow to import is imported inside the commands.
"""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> NoReturn:
    """The entry point. An interrupt ends it as quietly while it is being loaded as later on."""
    try:
        from segue.cli import shell

        shell.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)

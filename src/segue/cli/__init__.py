"""The command line. One module per command: a new one is a module with a `command` and a row in `app.COMMANDS`.

Results go to stdout, everything else to stderr. Slow imports are inside the commands.
"""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> NoReturn:
    """Entry point. An interrupt during import exits as quietly as one during a command."""
    try:
        from segue.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)

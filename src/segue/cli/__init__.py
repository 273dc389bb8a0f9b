"""The command line: one module for each command, which defines it as `command` and is listed in `app.COMMANDS`.

Results go to stdout, everything else to stderr. Slow modules are imported inside the functions that need them.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

_INTERRUPTED = 130
# The collector would go through all imported modules several times while a command starts.
_GARBAGE_THRESHOLD = 50_000


def main() -> NoReturn:
    """Entry point. An interrupt during import exits as quietly as one during a command."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    try:
        from segue.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)

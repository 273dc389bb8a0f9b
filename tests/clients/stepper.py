"""Runs a client once for each file `N.json` with its arguments, as they appear in a folder, until there is one `end`.

`segue with` starts it in place of the client: so the gateway keeps running between the prompts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

_POLL_SECONDS = 0.05


def main(folder: Path, program: str, *arguments: str) -> None:
    if arguments == ("--help",):
        # `segue with` reads which flags the client has.
        subprocess.run([program, *arguments], check=False)
        return
    for number in count():
        file = folder / f"{number}.json"
        while not file.exists():
            if (folder / "end").exists():
                return
            time.sleep(_POLL_SECONDS)
        subprocess.run([program, *arguments, *json.loads(file.read_text())], check=False)
        (folder / f"{number}.done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

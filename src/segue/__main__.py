"""Entry point of `python -m segue`, the same as the command `segue`."""

from __future__ import annotations

from segue.cli import main

if __name__ == "__main__":
    main()

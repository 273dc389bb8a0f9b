"""Runs the page about frameworks: the sections for the HTTP library of this environment.

    python -m tests.frameworks.pages

Each section has a namespace of its own; a `text` block is the output of the block before it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from tests.emulated import emulate_providers
from tests.frameworks.upstreams import IS_HTTPX2

PAGE = Path(__file__).parent.parent.parent / "docs" / "use-it-from-frameworks.md"
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read_sections() -> dict[str, list[tuple[str, str]]]:
    """Return the blocks of each section, with their languages."""
    return {title: _BLOCK.findall(text) for title, text in _SECTION.findall(PAGE.read_text("utf-8"))}


def uses_httpx2(blocks: list[tuple[str, str]]) -> bool:
    return not any("from segue.transport.httpx import" in code for _, code in blocks)


def run_section(blocks: list[tuple[str, str]], folder: Path) -> str | None:
    """Run the blocks of a section from files, because smolagents reads the source of tools; return what went wrong."""
    namespace: dict[str, object] = {"__name__": "page"}
    printed = ""
    for number, (language, code) in enumerate(blocks):
        if language == "text":
            if printed != code:
                return f"expected {code!r}, printed {printed!r}"
            continue
        output, file = StringIO(), folder / f"block_{number}.py"
        file.write_text(code, "utf-8")
        try:
            with redirect_stdout(output), redirect_stderr(StringIO()):
                exec(compile(code, file, "exec"), namespace)
        except Exception as error:  # noqa: BLE001  whatever a framework raises is a failure
            return f"{type(error).__name__}: {error}"
        printed = output.getvalue()
    return None


def main() -> int:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    failed = False
    with emulate_providers() as variables, tempfile.TemporaryDirectory() as home:
        os.environ.update(variables, XDG_STATE_HOME=home)
        for title, blocks in read_sections().items():
            if uses_httpx2(blocks) == IS_HTTPX2:
                folder = Path(home) / title
                folder.mkdir()
                fault = run_section(blocks, folder)
                failed = failed or fault is not None
                print(f"{PAGE.name}: {title}: {fault or 'runs'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

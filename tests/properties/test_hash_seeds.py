"""The same bytes in any process: hash seeds differ, digests do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tests.properties.bodies import BUILDERS, build_body
from tests.properties.checks import TARGETS
from tests.properties.generators import scenarios

SCRIPT = """
import hashlib, json, sys
import segue
digest = hashlib.sha256()
for line in open(sys.argv[1], encoding="utf-8"):
    source, body = json.loads(line)
    for target in sys.argv[2].split(","):
        out = segue.convert(body, source=source, target=target)
        digest.update(out.data + json.dumps(out.report.to_dict()).encode())
print(digest.hexdigest())
"""


def _digest(path: Path, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", SCRIPT, str(path), ",".join(TARGETS)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def test_equal_bytes_under_another_hash_seed(tmp_path: Path) -> None:
    lines: list[str] = []

    @settings(examples(5), database=None)
    @given(scenario=scenarios(), source=st.sampled_from(sorted(BUILDERS)))
    def collect(scenario, source) -> None:
        lines.append(json.dumps([source, build_body(scenario, source)]))

    collect()
    path = tmp_path / "bodies.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    assert len(lines) >= 25
    assert _digest(path, "1") == _digest(path, "4242")

"""A process is killed between every two events of a batch: nothing runs twice, nothing that was known is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scene", ["backwards", "stubborn", "cancelled"])
def test_killed_between_every_two_events(quick_folder: Path, scene: str) -> None:
    command = [sys.executable, "-m", "tests.runtime.crash_batch", str(quick_folder), scene]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=290, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    # Five calls: each is queued, begins and ends, is written down, and has three points of its own.
    assert json.loads(done.stdout)["points"] >= 30

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.store_cli import StoreCli


@pytest.fixture
def store_cli(tmp_path: Path) -> Generator[StoreCli]:
    """A store folder, on a memory file system if there is one."""
    if not os.access("/dev/shm", os.W_OK):
        yield StoreCli(tmp_path)
        return
    folder = Path(tempfile.mkdtemp(prefix="segue-", dir="/dev/shm"))
    yield StoreCli(folder)
    shutil.rmtree(folder)

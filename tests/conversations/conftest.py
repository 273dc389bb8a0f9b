"""The table of conversations as a fixture: all tests of a module that want a case get it one after the other."""

from __future__ import annotations

import pytest

from .made import Made
from .table import CASES


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def made(request: pytest.FixtureRequest) -> Made:
    return Made(request.param)

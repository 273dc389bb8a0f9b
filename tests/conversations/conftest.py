"""The table of conversations as a fixture: the tests of a module run case by case."""

from __future__ import annotations

import pytest

from tests.conversations.conversions import Conversions
from tests.conversations.table import CASES


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def made(request: pytest.FixtureRequest) -> Conversions:
    return Conversions(request.param)

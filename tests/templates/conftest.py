"""Skips these tests when the templates are missing, with the reason of the failed download."""

import pytest

from tests.templates.unpack import missing_reason


@pytest.fixture(autouse=True, scope="session")
def _templates() -> None:
    if missing := missing_reason():
        pytest.skip(missing)

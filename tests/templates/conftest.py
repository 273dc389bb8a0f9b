"""Skips these tests when the templates are missing, with the reason of the failed download."""

import pytest

from tests.templates.unpack import why_not


@pytest.fixture(autouse=True, scope="session")
def _templates() -> None:
    if missing := why_not():
        pytest.skip(missing)

"""Without templates there is nothing to judge by; the reason that is given is the one of the download."""

import pytest

from tests.templates.unpack import why_not


@pytest.fixture(autouse=True, scope="session")
def _templates() -> None:
    if missing := why_not():
        pytest.skip(missing)

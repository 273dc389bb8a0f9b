"""How properties run. Their numbers of examples are shares of one total: `tests/budget.py`.

On CI the examples are always the same, so a red run is never luck; everywhere else each run looks for new ones.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from tests.leaks import LeakCheck

settings.register_profile(
    "segue",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # it goes by the clock, and fails on a busy machine
    derandomize=bool(os.environ.get("CI")) and not os.environ.get("SEGUE_SOAK"),
)
settings.load_profile("segue")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LeakCheck(config), "leaks")


def pytest_collection_finish() -> None:
    """What is loaded by now stays until the end: to look through it for garbage again and again costs a tenth."""
    gc.collect()
    gc.freeze()

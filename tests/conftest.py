"""How properties run. Their numbers of examples are shares of one total: `tests/budget.py`.

On CI the examples are always the same, so a red run is never luck; everywhere else each run looks for new ones.
"""

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.register_profile("soak", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if os.environ.get("SEGUE_SOAK") else "default")


def pytest_collection_finish() -> None:
    """What is loaded by now stays until the end: to look through it for garbage again and again costs a tenth."""
    gc.collect()
    gc.freeze()

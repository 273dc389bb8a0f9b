"""How properties run. Their numbers of examples are shares of one total: `tests/budget.py`.

On CI the examples are always the same, so a red run is never luck; everywhere else each run looks for new ones.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.register_profile("soak", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if os.environ.get("SEGUE_SOAK") else "default")

"""How tests run: without the variables of the caller, and properties with a share of the examples (`tests/budget.py`).

On CI the examples are always the same, so a red run is never luck; everywhere else each run looks for new ones.
"""

import functools
import gc
import os
import random
import re
import ssl
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.leaks import LeakCheck
from tests.ports import reserve_port
from tests.sandboxes import describe_skipped

# Proxies, keys and addresses that the vendors' clients read, and what changes the output of commands.
_OF_THE_CALLER = re.compile(
    r".*_(PROXY|API_KEY|AUTH_TOKEN|BASE_URL|ENDPOINT)|(AWS|AZURE|GOOGLE|XDG)_.*|(NO|FORCE|CLI)_?COLOR.*|COLUMNS|LINES"
    r"|SEGUE_(STORE|MODEL|TOOL_FORMAT|DEBUG)"
)


def _remove_variables_of_the_caller() -> None:
    for name in [name for name in os.environ if _OF_THE_CALLER.fullmatch(name.upper())]:
        del os.environ[name]


def _share_tls_contexts() -> None:
    """Read each CA file once: the vendors' clients do it for every client, which costs more than most tests."""
    create = ssl.create_default_context
    create_shared = functools.cache(create)

    def create_default_context(*args: Any, **options: Any) -> ssl.SSLContext:
        return (create_shared if options.get("cafile") else create)(*args, **options)

    ssl.create_default_context = create_default_context


_remove_variables_of_the_caller()
_share_tls_contexts()
settings.register_profile(
    "segue",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # it goes by the clock, and fails on a busy machine
    derandomize=bool(os.environ.get("CI")) and not os.environ.get("SEGUE_SOAK"),
)
settings.load_profile("segue")
if not os.environ.get("SEGUE_SOAK"):
    # Hypothesis draws constants of the modules loaded so far: examples would depend on the order of the tests.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which a server may be started again and again."""
    with reserve_port() as number:
        yield number


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LeakCheck(config), "leaks")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None]:
    yield
    for line in describe_skipped(terminalreporter.stats.get("skipped", ())):
        terminalreporter.line(line, yellow=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`SEGUE_SHUFFLE=7` runs the tests in an order drawn from that number: no test may need another before it."""
    if seed := os.environ.get("SEGUE_SHUFFLE"):
        random.Random(seed).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded by now stays until the end: to look through it for garbage again and again costs a tenth."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()

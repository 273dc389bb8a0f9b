"""One test over a dimension: every member is tried, and all failures are reported by name.

Cases × wires as separate tests cost more in bookkeeping than in looking; cases alone stay tests of their own. A fixture
is shared by all members.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(names: str, members: Iterable[Any], *, ids: Callable[[Any], str] = str) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, within one test. `names`: one or more, with commas; then a member is a tuple."""
    keys = [name.strip() for name in names.split(",")]
    rows = [(ids(member), dict(zip(keys, (member,) if len(keys) == 1 else member, strict=True))) for member in members]
    assert rows, "nothing to try"
    assert len({name for name, _ in rows}) == len(rows), "two members of one name"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(keys) <= signature.parameters.keys(), f"{test.__name__} takes no {names}"

        @functools.wraps(test)
        def tries(**given: Any) -> None:
            failed: list[BaseException] = []
            for name, row in rows:
                try:
                    test(**given, **row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all of them are told
                    error.add_note(f"{names} = {name}")
                    failed.append(error)
            if failed:
                names_failed = ", ".join(error.__notes__[-1].partition(" = ")[2] for error in failed)
                raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} fail: {names_failed}", failed)

        rest = [parameter for key, parameter in signature.parameters.items() if key not in keys]
        tries.__dict__["__signature__"] = signature.replace(parameters=rest)
        return tries

    return decorate

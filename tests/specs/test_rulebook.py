"""Every rule states its evidence, and a measured one says what was measured, when and where."""

from __future__ import annotations

import re

import pytest

from segue.specs.rulebook import RulebookEntry, load_rulebook

_MEASURED = re.compile(r"\d{4}-\d\d-\d\d\b.*\b(200|400|422)\b.*\(.+\)")


@pytest.mark.parametrize("entry", load_rulebook().values(), ids=lambda entry: str(entry.id))
def test_measured_rule_names_day_status_and_place(entry: RulebookEntry) -> None:
    if entry.evidence == "measured":
        assert entry.measured
    if entry.measured:
        assert _MEASURED.search(entry.measured), entry.measured
        assert not entry.measured.startswith("/")

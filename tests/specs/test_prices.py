"""The table of prices, compared with the package that it is generated from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from segue.bridge.providers import catalogue, resolve
from segue.canonical.request import Usage
from segue.models import parse_model
from segue.runtime import prices
from segue.specs.prices import SOURCES, _load_table, find_model, find_prices
from segue.wire.anthropic.capabilities import capabilities_of

KNOWN = [(row.name, model) for row in catalogue().values() if row.name in SOURCES for model in row.models]
USAGES = [
    Usage(input=size, output=700, cache_read=400, cache_write=300, cache_write_1h=hour)
    for size in (1_000, 150_000, 300_000)
    for hour in (0, 100)
]


@pytest.mark.parametrize(("provider", "model"), KNOWN)
def test_table_has_the_prices_of_its_source(provider: str, model: str):
    source = pytest.importorskip("genai_prices")
    for usage in USAGES:
        reported = source.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            cache_write_1h_tokens=usage.cache_write_1h,
        )
        row = find_model(provider, model)
        assert row is not None
        for hour in (0, 2, 7, 13, 20):
            time = datetime(2026, 11, 18, hour, 45, tzinfo=UTC)
            expected = source.calc_price(reported, model, provider_id=SOURCES[provider], genai_request_timestamp=time)
            found = find_prices(row.tiers_at(hour * 60 + 45), usage.input).cost(usage)
            assert found == pytest.approx(float(expected.total_price)), hour


def test_table_is_made_from_the_pinned_version():
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
    source = _load_table()["source"]
    assert source.replace(" ", "==") in pins, "run make prices"


def test_cost_needs_no_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prices, "_load_package", lambda: None)
    prices._find_public_tiers.cache_clear()
    usage = Usage(input=1_000_000, output=1_000_000)
    assert prices.cost(usage, "anthropic", "claude-sonnet-5") == pytest.approx(12)
    assert prices.cost(usage, "openai", "gpt-4.1-2025-04-14") == pytest.approx(10)
    assert prices.cost(usage, "openai", "no-such-model") is None
    assert prices.cost(usage, "ollama", "llama3") is None
    assert prices.cost(usage, "anthropic", "claude-sonnet-5", local=True) is None


def test_context_of_a_model_that_is_not_in_the_catalogue_comes_from_the_table():
    assert resolve("openai/gpt-4o", {}).context == 128_000
    assert resolve("openai/no-such-model", {}).context is None


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
def test_maximum_output_of_claude_is_what_the_wire_accepts(provider: str):
    for name, model in catalogue()[provider].models.items():
        if parse_model(name).family == "claude":
            assert model.max_output == capabilities_of(parse_model(name)).max_tokens, name

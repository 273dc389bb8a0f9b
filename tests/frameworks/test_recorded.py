"""Bodies that frameworks sent in the middle of a run, replayed to every provider through a transport.

`make frameworks ARGS=--record` writes them. Each has three rounds of parallel calls of three models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import httpx2
import pytest

from segue.emulator import Emulator
from segue.transport import Transport
from tests.frameworks.recorded import Recorded, read_recorded
from tests.frameworks.task import ROUNDS
from tests.frameworks.upstreams import MODELS, Emulators
from tests.properties.readers import read

RECORDED = read_recorded()
CALLS = [call for calls in ROUNDS for call in calls]


class Upstream(NamedTuple):
    emulator: Emulator
    client: httpx2.Client


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, Upstream]]:
    with Emulators(MODELS) as emulators:
        yield {
            model: Upstream(
                emulator, emulators.enter_context(httpx2.Client(transport=Transport(model, **emulators.options)))
            )
            for model, emulator in emulators.running.items()
        }


def test_every_kind_of_body_is_recorded() -> None:
    names = " ".join(one.name for one in RECORDED)
    frameworks = ("langchain", "pydantic-ai", "openai-agents", "smolagents", "llama-index", "litellm")
    assert [name for name in frameworks if name not in names] == []
    hosts = {httpx2.URL(one.url).host for one in RECORDED}
    assert {"api.openai.com", "api.anthropic.com", "api.mistral.ai", "generativelanguage.googleapis.com"} <= hosts


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: one.name)
def test_recorded_body_is_accepted(recorded: Recorded, model: str, upstreams: dict[str, Upstream]) -> None:
    emulator, client = upstreams[model]
    before = len(emulator.requests)
    response = client.post(recorded.url, json=recorded.body)
    assert response.status_code == 200, response.text
    (request,) = emulator.requests[before:]
    assert request.accepted, request.refused
    check_results(recorded, emulator, request.body or {})


def check_results(recorded: Recorded, emulator: Emulator, body: dict) -> None:
    """Every call has the result of its own round."""
    if "smolagents" in recorded.name:  # It sends calls and results as text.
        return
    reading = read(body, emulator.api)
    assert [(one.name, one.arguments) for one in reading.interactions] == CALLS
    assert reading.surplus == []
    for place, (one, (name, arguments)) in enumerate(zip(reading.interactions, CALLS, strict=True)):
        (value,) = arguments.values()
        found = re.search(rf"{value} is fine, result (\d) of {name}\.", one.text or "")
        assert found is not None
        # The results are numbered in the order in which the tools ran, round by round.
        assert (int(found[1]) - 1) // len(ROUNDS[0]) == place // len(ROUNDS[0])

"""Chat clients get all thoughts back, however the model was switched: by `segue route`, by name, or by a route."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx2
import pytest

from segue.emulator import start
from segue.gateway.routes import RouteSettings
from tests.gateway.harness import Running, model_of, running_gateway
from tests.gateway.processes import ChatClient, Home, count_thoughts

OWN, OTHER = "anthropic", "gemini"
STEP = 'think Thought {number} of {api}.\nsay Looking.\ncall look {{"n": {number}}}'
SCRIPTS = {api: "\n---\n".join(STEP.format(number=number, api=api) for number in range(9)) for api in (OWN, OTHER)}
Send = Callable[[ChatClient, str], object]


@contextmanager
def by_segue_route() -> Generator[tuple[Running, Send]]:
    with running_gateway(SCRIPTS) as gateway:

        def send(client: ChatClient, api: str) -> None:
            token = {"authorization": f"Bearer {gateway.token}"}
            models = {"models": [model_of(api)] if api == OTHER else []}
            assert httpx2.post(f"{gateway.url}/segue/route", json=models, headers=token).status_code == 200
            client.send(gateway.url)

        yield gateway, send


@contextmanager
def by_the_name_of_a_model() -> Generator[tuple[Running, Send]]:
    """`/model PROVIDER/MODEL` in the client; the first requests use its own name, and the default."""
    routes = (RouteSettings((model_of(OWN),), model="any"),)
    with running_gateway(SCRIPTS, routes=routes) as gateway:
        yield gateway, lambda client, api: client.send(gateway.url, "any" if api == OWN else model_of(api))


@contextmanager
def by_the_full_name_of_the_same_model() -> Generator[tuple[Running, Send]]:
    routes = (RouteSettings((model_of(OWN),), model="any"),)
    with running_gateway(SCRIPTS, routes=routes) as gateway:
        names = iter(["any", model_of(OWN), "any", model_of(OWN)])
        yield gateway, lambda client, api: client.send(gateway.url, next(names) if api == OWN else model_of(api))


@contextmanager
def by_size() -> Generator[tuple[Running, Send]]:
    """The conversation grows out of one route into the next one, with the same target."""
    routes = (
        RouteSettings((model_of(OTHER),), model="other"),
        RouteSettings((model_of(OWN),), model="any", min_tokens=400),
        RouteSettings((model_of(OWN), model_of(OTHER)), model="any"),
    )
    with running_gateway(SCRIPTS, routes=routes) as gateway:

        def send(client: ChatClient, api: str) -> None:
            client.send(gateway.url, "any" if api == OWN else "other")
            client.messages[-1]["content"] = "seen " * 100

        yield gateway, send


@pytest.mark.parametrize(
    "switch", [by_segue_route, by_the_name_of_a_model, by_the_full_name_of_the_same_model, by_size]
)
def test_switch_and_back(switch: Callable[[], AbstractContextManager[tuple[Running, Send]]]) -> None:
    with switch() as (gateway, send):
        client = ChatClient("Look often.")
        for api in (OWN, OWN, OTHER, OWN, OTHER, OWN):
            send(client, api)
        assert count_thoughts(gateway.emulators[OWN]) == [0, 1, 2, 3]
        assert count_thoughts(gateway.emulators[OTHER]) == [0, 1]


def test_reordered_routes_after_a_restart_and_on_other_workers(tmp_path: Path) -> None:
    with start(OWN, script=SCRIPTS[OWN]) as emulator:
        home = Home(tmp_path / "home", emulator, "claude-sonnet-5")
        own, store = home.config.read_text(), str(tmp_path / "entries.db")
        target = 'targets = ["test/claude-sonnet-5"]'
        any_route, other_route = (
            f'[[gateway.routes]]\nmodel = "*"\n{target}\n',
            f'[[gateway.routes]]\nmodel = "x"\n{target}\n',
        )
        client = ChatClient("Look often.")
        for routes in (any_route, other_route + any_route, f'[[gateway.routes]]\nname = "n"\nmodel = "a*"\n{target}\n'):
            home.config.write_text(own + routes)
            with home.serve("--workers", "2", "--store", store, has_model=False) as gateway:
                for _ in range(2):
                    client.send(gateway.url)
        assert count_thoughts(emulator) == list(range(6))

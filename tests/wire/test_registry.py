"""The registry: one row for each API and server profile, and the names that lead to a row."""

from __future__ import annotations

import json

import pytest

import segue
from segue.conformance import apis, profile_names
from segue.emulator.providers import PROVIDERS
from segue.errors import InputError
from segue.specs.providers import load_providers, load_services, providers_by_name
from segue.wire.registry import SERVERS, WIRES, find_wire, find_wire_or_server
from tests.cli.process import is_one_line_error, run

BODY = {"messages": [{"role": "user", "content": "hi"}]}


def test_every_list_has_the_order_of_the_registry() -> None:
    assert tuple(PROVIDERS) == tuple(WIRES)
    assert [row.name for row in segue.formats() if row.kind != "text"] == list(WIRES)


def test_every_row_has_rules_and_paths() -> None:
    assert set(apis()) == set(WIRES)
    assert set(profile_names()) == set(SERVERS)
    for wire in (*WIRES.values(), *SERVERS.values()):
        assert wire.path.startswith("/")
        assert wire.base_path.startswith("/") or not wire.base_path
        assert wire.base_api in WIRES
        assert (wire.kind == "server") == (wire.profile is not None)
        assert wire.served_families is None or set(wire.families) <= wire.served_families


@pytest.mark.parametrize("name", sorted({*WIRES, *providers_by_name(), *SERVERS, *load_services()}))
def test_every_name_leads_to_a_row(name: str) -> None:
    row = find_wire_or_server(name, argument="target")
    if name in WIRES:
        assert row is WIRES[name]
    elif name in providers_by_name():
        provider = providers_by_name()[name]
        assert (row.name, row.profile) == (provider["api"], provider.get("profile"))
    elif name in SERVERS:
        assert row is SERVERS[name]
    assert find_wire(name, argument="source") is WIRES[row.name]


def test_providers_have_rows() -> None:
    for provider in load_providers().values():
        assert provider["api"] in WIRES
        assert provider.get("profile") is None or provider["profile"] in SERVERS
    assert set(load_services().values()) <= set(WIRES)


@pytest.mark.parametrize(
    ("name", "api", "profile"),
    [
        ("moonshot", "kimi", None),
        ("dashscope", "qwen", None),
        ("google", "gemini", None),
        ("azure", "azure-foundry", None),
        ("openai", "openai-chat", None),  # the shape of the body decides
        ("groq", "openai-chat", "groq"),
        ("vllm", "openai-chat", "vllm"),
        ("together", "openai-chat", None),
    ],
)
def test_provider_names_are_accepted_as_apis(name: str, api: str, profile: str | None) -> None:
    made = segue.convert(BODY, source="openai-chat", target=name)
    assert made.data == segue.convert(BODY, source="openai-chat", target=api, profile=profile).data
    verdict = segue.check(made.body, name)
    assert (verdict.api, bool(verdict)) == (api, True)
    assert segue.repair(made.body, name).changes == ()
    assert segue.Conversation.from_body(made.body, source=name).render(name).data


def test_a_profile_of_the_provider_can_be_named_again_but_no_other() -> None:
    assert find_wire_or_server("groq", "groq", argument="target") is SERVERS["groq"]
    with pytest.raises(InputError, match=r"profile: groq has the profile groq; it can't have vllm too"):
        segue.convert(BODY, target="groq", profile="vllm")
    with pytest.raises(InputError, match=r"profile: kimi has no profiles"):
        segue.convert(BODY, target="moonshot", profile="vllm")


@pytest.mark.parametrize(
    ("name", "near"),
    [("antropic", "anthropic"), ("moonshott", "moonshot"), ("Gemini", "gemini"), ("openai_chat", "openai-chat")],
)
def test_an_unknown_name_suggests_the_nearest(name: str, near: str) -> None:
    expected = f"unknown API {name!r}; did you mean {near!r}?"
    for call in (lambda: segue.convert(BODY, target=name), lambda: segue.check(BODY, name)):
        with pytest.raises(InputError) as raised:
            call()
        assert expected in str(raised.value)
    ended = run("convert", "--to", name, stdin=json.dumps(BODY).encode())
    assert is_one_line_error(ended)
    assert expected in ended.err


def test_provider_names_on_the_command_line() -> None:
    data = json.dumps(BODY).encode()
    assert run("convert", "--to", "moonshot", stdin=data).out == run("convert", "--to", "kimi", stdin=data).out
    assert run("check", "--api", "dashscope", stdin=data).lines == ["accepted"]
    assert run("rules", "--api", "moonshot").out == run("rules", "--api", "kimi").out

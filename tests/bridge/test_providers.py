"""The provider catalogue, its resolution, and secret keys."""

from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue.bridge import aws
from segue.bridge.providers import Endpoint, Secret, catalogue, first_available, resolve
from segue.canonical.request import Usage
from segue.errors import InputError
from segue.runtime.prices import cost
from segue.wire.registry import SERVERS, WIRES

KEY = "sk-test-0123456789abcdef"
HOME = {"HOME": "/nonexistent"}
WANTED = (
    "openai",
    "openai-chat",
    "anthropic",
    "gemini",
    "mistral",
    "moonshot",
    "deepseek",
    "dashscope",
    "azure",
    "bedrock",
    "openrouter",
    "groq",
)
PLACES = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com", "AWS_REGION": "eu-west-1", **HOME}


# -------------------------------------------------------------------------------------------------------- the catalogue


def test_every_provider_has_a_known_api() -> None:
    known = catalogue()
    assert set(WANTED) <= set(known)
    for provider in known.values():
        assert provider.api in WIRES
        assert provider.profile is None or provider.profile in SERVERS
        assert provider.title
        assert provider.base_url.startswith(("https://", "http://127.0.0.1")) or provider.url_variables
        assert not provider.models or provider.default in provider.models
    assert {provider.api for provider in known.values()} == set(WIRES)


def test_names_and_aliases_are_unique() -> None:
    names = [name for provider in catalogue().values() for name in (provider.name, *provider.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", WANTED)
def test_provider_name_selects_its_default_model(name: str) -> None:
    endpoint = resolve(name, PLACES)
    assert (endpoint.provider, endpoint.model) == (name, catalogue()[name].default)
    assert endpoint.context is not None
    assert endpoint.lacks_key


@pytest.mark.parametrize("name", WANTED)
def test_each_key_variable_is_read(name: str) -> None:
    row = catalogue()[name]
    for variable in (*row.keys, *row.bearer):
        endpoint = resolve(name, {**PLACES, variable: f" {KEY}\n"})
        assert endpoint.key == Secret(KEY)
        assert endpoint.bearer == (variable in row.bearer)
        assert not endpoint.lacks_key


def test_the_first_key_variable_counts() -> None:
    both = {"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two"}
    assert resolve("gemini", both).key == Secret("one")
    assert resolve("gemini", {**both, "GEMINI_API_KEY": " "}).key == Secret("two")


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("kimi/kimi-k2.6", "moonshot", "kimi-k2.6"),
        ("qwen/qwen-plus", "dashscope", "qwen-plus"),
        ("openrouter/anthropic/claude-sonnet-5", "openrouter", "anthropic/claude-sonnet-5"),
        ("OpenAI/gpt-5", "openai", "gpt-5"),
        ("claude-opus-4-1-20250805", "anthropic", "claude-opus-4-1-20250805"),
        ("gpt-4.1", "openai", "gpt-4.1"),
        ("gpt-5-codex", "openai", "gpt-5-codex"),
        ("gemini-3.8-flash", "gemini", "gemini-3.8-flash"),
        ("kimi-k2-thinking", "moonshot", "kimi-k2-thinking"),
        ("deepseek-chat", "deepseek", "deepseek-chat"),
        ("mistral-large-4", "mistral", "mistral-large-4"),
        ("qwen3-max", "dashscope", "qwen3-max"),
        ("us.anthropic.claude-sonnet-5", "bedrock", "us.anthropic.claude-sonnet-5"),
        (
            "arn:aws:bedrock:eu-west-1:1:inference-profile/x",
            "bedrock",
            "arn:aws:bedrock:eu-west-1:1:inference-profile/x",
        ),
    ],
)
def test_names_find_their_provider(name: str, provider: str, model: str) -> None:
    endpoint = resolve(name, PLACES)
    assert (endpoint.provider, endpoint.model) == (provider, model)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("antropic/claude-sonnet-5", "did you mean anthropic"),
        ("opnai/gpt-5", "did you mean openai"),
        ("zzz/gpt-5", "expected one of anthropic, openai"),
        ("some-model", "write PROVIDER/some-model"),
        ("ollama", "write ollama/MODEL"),
        ("openai/", "write openai/MODEL"),
        ("", "write PROVIDER/"),
    ],
)
def test_unknown_names(name: str, expected: str) -> None:
    with pytest.raises(InputError, match="model") as raised:
        resolve(name, PLACES)
    assert expected in str(raised.value)


def test_a_dated_name_has_the_window_of_its_model() -> None:
    assert resolve("anthropic/claude-sonnet-4-5-20250929", {}).context == 200_000
    assert resolve("anthropic/claude-of-tomorrow", {}).context is None


# ------------------------------------------------------------------------------------------------------------ addresses


@pytest.mark.parametrize(
    ("name", "environ", "base_url"),
    [
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"}, "http://127.0.0.1:9/v1"),
        ("openai-chat", {"OPENAI_BASE_URL": "https://proxy/openai"}, "https://proxy/openai"),
        ("anthropic", {"ANTHROPIC_BASE_URL": "https://proxy"}, "https://proxy"),
        ("gemini", {"GOOGLE_GEMINI_BASE_URL": "https://proxy/g"}, "https://proxy/g"),
        ("groq", {"GROQ_BASE_URL": "https://api.groq.com"}, "https://api.groq.com/openai/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com/"}, "https://a.openai.azure.com/openai/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.example/openai/"}, "https://a.example/openai/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.example/openai/v1/"}, "https://a.example/openai/v1"),
        (
            "azure",
            {"AZURE_AI_PROJECT_ENDPOINT": "https://a.services.ai.azure.com/api/projects/p"},
            "https://a.services.ai.azure.com/api/projects/p/openai/v1",
        ),
        ("bedrock", {"AWS_DEFAULT_REGION": "us-west-2"}, "https://bedrock-runtime.us-west-2.amazonaws.com"),
        ("bedrock", {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://127.0.0.1:9"}, "http://127.0.0.1:9"),
        ("mistral", {"MISTRAL_BASE_URL": "https://m.example"}, "https://m.example/v1"),
        ("openai", {"OPENAI_BASE_URL": "  "}, "https://api.openai.com/v1"),
    ],
)
def test_official_variables_name_other_places(name: str, environ: dict[str, str], base_url: str) -> None:
    assert resolve(name, {**HOME, **environ}).base_url == base_url


@pytest.mark.parametrize(
    "url", ["api.openai.com", "ftp://x", "https://", "https://x:y:z", "https://a b/v1", "https://x\n"]
)
def test_invalid_url(url: str) -> None:
    with pytest.raises(InputError, match="OPENAI_BASE_URL: not a valid URL"):
        resolve("openai", {"OPENAI_BASE_URL": url + "\x00"})


def test_an_address_holds_no_password() -> None:
    with pytest.raises(InputError, match="OPENAI_BASE_URL") as raised:
        resolve("openai", {"OPENAI_BASE_URL": "https://me:hunter22@proxy/v1"})
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(("name", "expected"), [("azure", "AZURE_OPENAI_ENDPOINT"), ("bedrock", "AWS_REGION")])
def test_missing_setting_is_named(name: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        resolve(name, HOME)


# ------------------------------------------------------------------------------------------------------------ the first


def test_the_first_whose_key_is_set() -> None:
    assert first_available(HOME) is None
    assert first_available({"OPENAI_API_KEY": " ", **HOME}) is None
    found = first_available({"GROQ_API_KEY": "g", "MOONSHOT_API_KEY": "m", **HOME})
    assert found is not None
    assert found.name == "moonshot/kimi-k2.6"
    # A key for a place that is not named is of no use.
    assert first_available({"AZURE_OPENAI_API_KEY": "a", **HOME}) is None
    signed = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s", **HOME}
    assert first_available(signed) is None
    found = first_available({**signed, "AWS_REGION": "eu-west-1"})
    assert found is not None
    assert found.provider == "bedrock"
    mine = {"mine": {"api": "openai-chat", "base_url": "https://mine.example/v1", "key_variable": "MINE", "model": "m"}}
    assert first_available({"MINE": "k", **HOME}, mine) == resolve("mine/m", {"MINE": "k"}, mine)


# ------------------------------------------------------------------------------------------------------- the user's own


def test_server_with_a_known_api() -> None:
    config = {
        "lab": {
            "base_url": "https://lab.example/v1/",
            "key_variable": "LAB_KEY",
            "profile": "vllm",
            "models": {"big": {"context": 32_000, "input": 1.0, "output": 2.0}},
            "headers": {"X-Team": "blue"},
            "tool_format": "hermes",
        }
    }
    endpoint = resolve("lab", {"LAB_KEY": KEY}, config)
    assert endpoint == Endpoint(
        "lab",
        "big",
        "openai-chat",
        "https://lab.example/v1",
        profile="vllm",
        tool_format="hermes",
        key=Secret(KEY),
        context=32_000,
        headers=(("x-team", "blue"),),
        variables=("LAB_KEY",),
    )
    assert resolve("lab/other", {}, config).lacks_key


def test_a_local_one_needs_no_key() -> None:
    config = {"emulator": {"api": "anthropic", "base_url": "http://127.0.0.1:8080", "models": ["claude-sonnet-5"]}}
    endpoint = resolve("emulator", {}, config)
    assert (endpoint.api, endpoint.model, endpoint.lacks_key) == ("anthropic", "claude-sonnet-5", False)
    assert endpoint.key is not None
    remote = {"far": {"api": "openai-chat", "base_url": "http://far.example/v1", "model": "m"}}
    assert resolve("far", {}, remote).key is None


def test_known_provider_is_configurable_by_any_name() -> None:
    for name in ("moonshot", "kimi"):
        changed = {name: {"base_url": "https://api.moonshot.cn/v1", "tool_format": "kimi"}}
        endpoint = resolve(
            "kimi/kimi-k2.6", {"MOONSHOT_BASE_URL": "https://elsewhere", "MOONSHOT_API_KEY": "k"}, changed
        )
        assert (endpoint.provider, endpoint.base_url, endpoint.tool_format) == (
            name,
            "https://api.moonshot.cn/v1",
            "kimi",
        )
        assert endpoint.key == Secret("k")
    # What was changed for one is not changed for all.
    assert resolve("kimi", {}).base_url == "https://api.moonshot.ai/v1"


@pytest.mark.parametrize(
    ("row", "path", "expected"),
    [
        ({"base_url": "https://x", "base_ulr": "y"}, "providers.x.base_ulr", "did you mean base_url?"),
        ({"base_url": "https://x", "key": KEY}, "providers.x.key", ""),
        ({}, "providers.x", "needs a base_url"),
        ({"base_url": 3}, "providers.x.base_url", "a string was expected"),
        ({"base_url": "https://x", "api": "opnai"}, "providers.x.api", "did you mean 'openai'?"),
        ({"base_url": "https://x", "profile": "grok"}, "providers.x.profile", "expected one of"),
        ({"base_url": "https://x", "models": 3}, "providers.x.models", "expected model names"),
        ({"base_url": "https://x", "models": {"m": {"context": "long"}}}, "providers.x.models", "expected model names"),
        (
            {"base_url": "https://x", "headers": {"authorization": KEY}},
            "providers.x.headers.authorization",
            "key_variable",
        ),
        ({"base_url": "https://x", "headers": {"x": "a\r\nb: c"}}, "providers.x.headers.'x'", "one line"),
        *(
            (
                {"base_url": "https://x", "key_variable": key},
                "providers.x.key_variable",
                "name of an environment variable",
            )
            for key in (KEY, ["MY_KEY", KEY], f"Bearer {KEY}", "AIzaSyD0123456789abcdefghijklmnopqrstuv", "")
        ),
        ("https://x", "providers.x", "expected a table"),
    ],
)
def test_invalid_settings(row: Any, path: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        resolve("openai/gpt-5", {}, {"x": row})
    assert raised.value.path == path
    assert expected in str(raised.value)
    assert KEY not in str(raised.value)


# -------------------------------------------------------------------------------------------------------------- secrets


def test_key_is_never_printed() -> None:
    endpoint = resolve("openai/gpt-5", {"OPENAI_API_KEY": KEY})
    assert endpoint.key is not None
    assert endpoint.key.reveal() == KEY
    shown = [repr(endpoint), str(endpoint), f"{endpoint.key}", f"{endpoint.key!r}", f"{endpoint.key:>40}"]
    assert not any(KEY in text for text in shown)
    for dump in (msgspec.json.encode, msgspec.to_builtins, msgspec.msgpack.encode, pickle.dumps):
        with pytest.raises(TypeError) as raised:
            dump(endpoint)
        assert KEY not in "".join(traceback.format_exception(raised.value))
    assert copy.deepcopy(endpoint) == endpoint
    assert endpoint == resolve("openai/gpt-5", {"OPENAI_API_KEY": KEY})
    assert endpoint != resolve("openai/gpt-5", {"OPENAI_API_KEY": "other"})
    assert len({endpoint, resolve("openai/gpt-5", {"OPENAI_API_KEY": KEY})}) == 1


def test_aws_keys_are_never_printed() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_SESSION_TOKEN": "tok", **PLACES}
    shown = repr(resolve("bedrock", environ))
    assert not any(secret in shown for secret in ("AKIAEXAMPLE", KEY, "tok'"))


@pytest.mark.parametrize("value", ["sk-\u201cquoted\u201d", "sk-a b", "sk-a\r\nx: y"])
def test_invalid_key(value: str) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY") as raised:
        resolve("openai", {"OPENAI_API_KEY": value})
    assert value not in str(raised.value)


# ------------------------------------------------------------------------------------------------------------- Amazon's


def aws_files(folder: Path) -> dict[str, str]:
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = A1\naws_secret_access_key = s%1\n\n[work]\naws_access_key_id=A2\n"
        "aws_secret_access_key=s2\naws_session_token=t2\n"
    )
    (folder / "config").write_text(
        "[default]\nregion = eu-north-1\n[profile work]\nregion = us-west-2\n[profile roled]\nrole_arn = arn:x\n"
        "source_profile = default\nregion = us-east-1\n"
    )
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_CONFIG_FILE": str(folder / "config"),
        **HOME,
    }


def test_profiles_of_amazons_tools(tmp_path: Path) -> None:
    environ = aws_files(tmp_path)
    endpoint = resolve("bedrock", environ)
    assert endpoint.region == "eu-north-1"
    assert endpoint.signer == aws.Credentials(Secret("A1"), Secret("s%1"))
    endpoint = resolve("bedrock", {**environ, "AWS_PROFILE": "work"})
    assert endpoint.base_url == "https://bedrock-runtime.us-west-2.amazonaws.com"
    assert endpoint.signer == aws.Credentials(Secret("A2"), Secret("s2"), Secret("t2"))
    # Variables count more, and a bearer token most.
    named = {**environ, "AWS_ACCESS_KEY_ID": "A3", "AWS_SECRET_ACCESS_KEY": "s3"}
    assert resolve("bedrock", named).signer == aws.Credentials(Secret("A3"), Secret("s3"))
    endpoint = resolve("bedrock", {**named, "AWS_BEARER_TOKEN_BEDROCK": "b"})
    assert (endpoint.key, endpoint.signer) == (Secret("b"), None)
    assert resolve("bedrock", {**environ, "AWS_PROFILE": "nobody", "AWS_REGION": "x"}).lacks_key


def test_profile_with_external_credentials_needs_botocore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {**aws_files(tmp_path), "AWS_PROFILE": "roled"}
    monkeypatch.setitem(__import__("sys").modules, "botocore.session", None)
    with pytest.raises(InputError, match=r"segue\[bedrock\]"):
        resolve("bedrock", environ)


def test_botocore_credentials_are_read_each_time() -> None:
    class Held:
        count = 0

        def get_frozen_credentials(self) -> Any:
            self.count += 1
            return type("Frozen", (), {"access_key": f"A{self.count}", "secret_key": "s", "token": None})

    source = aws.BotocoreCredentials(Held())
    assert [source.get().key_id.reveal() for _ in range(2)] == ["A1", "A2"]


# --------------------------------------------------------------------------------------------------------------- prices


def test_cost_follows_the_user_price() -> None:
    prices = {"context": 1, "input": 1.0, "output": 10.0, "cache_read": 0.1, "cache_write": 2.0}
    config = {
        "mine": {
            "api": "openai-chat",
            "base_url": "https://x",
            "models": {"m": prices, "plain": {"input": 1.0, "output": 10.0}},
        }
    }
    usage = Usage(input=1_000_000, output=100_000, cache_read=500_000, cache_write=100_000, reasoning=50_000)
    mine = catalogue(config)["mine"]
    assert cost(usage, "mine", "m", mine) == pytest.approx(0.4 + 1.0 + 0.05 + 0.2)
    assert cost(usage, "mine", "plain", mine) == pytest.approx(2.0)
    assert cost(usage, "mine", "other", mine) is None
    assert cost(usage, "nobody", "m") is None


def test_cost_follows_the_table() -> None:
    pytest.importorskip("genai_prices")
    usage = Usage(input=10_000, output=1_000, cache_read=5_000)
    assert cost(usage, "anthropic", "claude-sonnet-4-5-20250929") == pytest.approx(0.015 + 0.0015 + 0.015)
    assert cost(usage, "openai", "gpt-of-tomorrow") is None
    # A provider of one's own has the price and the context of the model's vendor.
    mine = {
        "s1": {"api": "anthropic", "base_url": "https://x"},
        "here": {"api": "anthropic", "base_url": "http://127.0.0.1:1"},
    }
    rows = catalogue(mine)
    own, vendors = "claude-sonnet-4-5", cost(usage, "anthropic", "claude-sonnet-4-5")
    assert cost(usage, "s1", own, rows["s1"]) == pytest.approx(vendors)
    assert cost(usage, "here", own, rows["here"], local=True) is None
    assert resolve(f"s1/{own}", {}, mine).context == resolve(f"anthropic/{own}", {}).context
    assert resolve(f"here/{own}", {}, mine).context is None
    assert cost(usage, "anthropic", "claude-sonnet-4-5", local=True) is None


def test_dissimilar_name_has_no_suggestion() -> None:
    with pytest.raises(InputError, match="expected one of"):
        resolve("nope/x", {})
    with pytest.raises(InputError, match="did you mean anthropic"):
        resolve("antropic/x", {})

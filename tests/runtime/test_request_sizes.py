"""The sizes of a session's requests, by the bodies that strict providers recorded."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from segue._conversation import Conversation
from segue.bridge.providers import Endpoint, resolve
from segue.canonical.request import Options, Reasoning
from segue.emulator import Emulator
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.runtime.events import ConversationCompressed, ReplyReceived, RetryScheduled
from segue.runtime.model_limits import ModelLimits
from segue.runtime.routing import Fixed
from tests.runtime.harness import endpoint_of, open_harness

LIMIT_KEYS = {
    "anthropic": ("max_tokens",),
    "openai-chat": ("max_completion_tokens",),
    "openai-responses": ("max_output_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
    "bedrock": ("inferenceConfig", "maxTokens"),
    "deepseek": ("max_tokens",),
}


def limit_in(body: Any, api: str) -> Any:
    for key in LIMIT_KEYS[api]:
        body = (body or {}).get(key)
    return body


def ask(api: str, script: str, folder: Path, *questions: str, **more: Any) -> tuple[Emulator, list[Any], list[Any]]:
    """Run exchanges; return the provider, the outcomes and the events."""
    endpoint: dict[str, Any] = dict(more.pop("endpoint", {}))

    async def play() -> tuple[Emulator, list[Any], list[Any]]:
        async with open_harness({api: script}, folder, **more) as harness:
            provider = harness.providers[api]
            model = endpoint.pop("model", None)
            harness.session.set_route(Fixed(replace(endpoint_of(provider, model), **endpoint)))
            ended = [await harness.session.ask(question) for question in questions or ("Hi",)]
            return provider, ended, harness.events

    return asyncio.run(play())


# -------------------------------------------------------------------------------------------------- the limit of output


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("anthropic/claude-sonnet-5", 128_000),
        ("anthropic/claude-opus-4-1-20250805", 32_000),
        ("openai/gpt-5.6-terra", 128_000),
        ("openai-chat/gpt-4.1", 32_768),
        ("gemini/gemini-3.8-flash", 65_536),
        ("bedrock/us.anthropic.claude-sonnet-5", 128_000),
        ("deepseek/deepseek-v4-pro", 384_000),
    ],
)
def test_limit_is_the_maximum_of_the_model(name: str, limit: int, tmp_path: Path):
    row = resolve(name, {"AWS_REGION": "us-east-1"})
    sizes = {"context": row.context, "max_output": row.max_output}
    provider, ended, _ = ask(row.api, "say Yes.", tmp_path, endpoint={"model": row.model, **sizes})
    assert ended[0].outcome == "answered"
    assert limit_in(provider.requests[0].body, row.api) == limit


def test_prompt_reduces_the_limit_to_what_the_context_has_left(tmp_path: Path):
    sizes = {"context": 20_000, "max_output": 16_000}
    provider, _, _ = ask("anthropic", "say Yes.\n---\nsay Yes.", tmp_path, "Hi", "long " * 12_000, endpoint=sizes)
    first, second = (limit_in(request.body, "anthropic") for request in provider.requests)
    assert first == 16_000
    assert 1_024 <= second < 5_000


def test_unknown_model_gets_no_limit_where_the_api_needs_none(tmp_path: Path):
    provider, _, _ = ask("openai-chat", "say Yes.", tmp_path, endpoint={"model": "some-model"})
    assert provider.requests[0].body is not None
    assert not {"max_tokens", "max_completion_tokens"} & set(provider.requests[0].body)


@pytest.mark.parametrize("requested", [100, 999_999])
def test_requested_limit_counts_up_to_the_maximum(requested: int, tmp_path: Path):
    provider, _, _ = ask(
        "anthropic", "say Yes.", tmp_path, endpoint={"max_output": 5_000}, options=Options(max_tokens=requested)
    )
    assert limit_in(provider.requests[0].body, "anthropic") == min(requested, 5_000)


def test_options_of_the_session_take_precedence_over_those_of_the_model(tmp_path: Path):
    options = Options(temperature=0.5, top_p=0.9)
    provider, _, _ = ask(
        "openai-chat",
        "say Yes.",
        tmp_path,
        endpoint={"model": "gpt-4.1", "options": options},
        options=Options(temperature=0, reasoning=Reasoning(effort="low")),
    )
    body = provider.requests[0].body
    assert body is not None
    assert (body["temperature"], body["top_p"]) == (0, 0.9)


def test_rejected_limit_is_lowered_once_to_the_value_in_the_error(tmp_path: Path):
    rejection = "error 400 max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for it"
    script = f"{rejection}\n---\nsay Yes.\n---\nsay Again."
    provider, ended, events = ask("anthropic", script, tmp_path, "Hi", "And?", endpoint={"max_output": 128_000})
    assert [limit_in(request.body, "anthropic") for request in provider.requests] == [128_000, 8_192, 8_192]
    assert [each.text for each in ended] == ["Yes.", "Again."]
    assert [event.why for event in events if isinstance(event, RetryScheduled)] == [
        "accepts at most 8,192 output tokens here"
    ]


def test_limit_that_this_prompt_leaves_is_not_that_of_the_next_request(tmp_path: Path):
    rejection = "error 400 input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, try again"
    script = f"{rejection}\n---\nsay Yes.\n---\nsay Again."
    provider, _, _ = ask("anthropic", script, tmp_path, "Hi", "And?", endpoint={"max_output": 64_000})
    assert [limit_in(request.body, "anthropic") for request in provider.requests] == [64_000, 9_984, 64_000]


def test_limit_is_lowered_only_once(tmp_path: Path):
    script = "\n---\n".join(
        f"error 400 max_tokens: 128000 > {limit}, which is the maximum allowed number of output tokens"
        for limit in (8192, 4096, 2048)
    )
    provider, ended, _ = ask("anthropic", script, tmp_path, endpoint={"max_output": 128_000})
    assert len(provider.requests) == 2
    assert ended[0].outcome == "failed"


def test_limit_that_is_not_lower_than_the_sent_one_is_not_tried_again(tmp_path: Path):
    script = "error 400 max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens"
    provider, ended, _ = ask("anthropic", script, tmp_path, endpoint={"max_output": 4_000})
    assert (len(provider.requests), ended[0].outcome) == (1, "failed")


# ------------------------------------------------------------------------------------------------------ calls cut off

CUT = 'call echo {"words": "one tw\nend length'


def test_cut_off_call_is_answered_with_the_limit_and_the_second_one_ends_the_exchange(tmp_path: Path):
    script = "\n---\n".join([CUT] * 5)
    provider, ended, _ = ask("openai-chat", script, tmp_path, endpoint={"model": "gpt-4.1", "max_output": 900})
    assert len(provider.requests) == 2
    body = provider.requests[1].body
    assert body is not None
    result = next(message for message in body["messages"] if message["role"] == "tool")
    assert "in smaller pieces" in result["content"]
    assert "the output limit of 900 tokens" in result["content"]
    assert ended[0].outcome == "failed"
    assert "2 replies in a row were cut off at the output limit of 900 tokens" in ended[0].text


def test_whole_call_between_two_cut_off_ones_resets_the_count(tmp_path: Path):
    script = "\n---\n".join([CUT, 'call echo {"words": "a"}', CUT, "say Done."])
    provider, ended, _ = ask("openai-chat", script, tmp_path)
    assert (len(provider.requests), ended[0].text) == (4, "Done.")


# -------------------------------------------------------------------------------------------------------- the context


def test_too_long_request_is_compressed_and_sent_again_once(tmp_path: Path, conversation_log: ConversationLog):
    words = "word " * 8_000
    script = "\n---\n".join(
        [
            *(f'call echo {{"words": "{words}"}}\n---\nsay Turn {turn}.' for turn in range(3)),
            "error 400 prompt is too long: 61000 tokens > 40000 maximum",
            "say Short enough.",
        ]
    )
    questions = ["one", "two", "three", "four"]
    provider, ended, events = ask("anthropic", script, tmp_path, *questions, log=conversation_log)
    assert ended[-1].text == "Short enough."
    rejected, repeated = provider.requests[-2:]
    assert len(str(repeated.body)) < 0.7 * len(str(rejected.body))
    compressed = [event for event in events if isinstance(event, ConversationCompressed)]
    assert len(compressed) == 1
    assert compressed[0].after <= 0.6 * 40_000
    assert compressed[0].why.endswith("rejected the request as too long")


def test_second_rejection_of_the_same_request_ends_the_exchange(tmp_path: Path):
    words = "word " * 8_000
    rejection = "error 400 prompt is too long: 61000 tokens > 4000 maximum"
    script = "\n---\n".join([f'call echo {{"words": "{words}"}}', "say Read.", *[rejection] * 4])
    provider, ended, _ = ask("anthropic", script, tmp_path, "one", "two")
    assert ended[-1].outcome == "failed"
    assert [request.status for request in provider.requests] == [200, 200, 400, 400]


def test_context_size_is_learned_from_the_error(tmp_path: Path):
    sizes = ModelLimits()
    script = "error 400 prompt is too long: 61000 tokens > 40000 maximum"
    provider, _, _ = ask("anthropic", script, tmp_path, sizes=sizes)
    endpoint = endpoint_of(provider)
    assert sizes.sizes(endpoint).context == 40_000
    assert sizes.sizes(Endpoint("a", "other", "anthropic", endpoint.base_url)).context is None


# -------------------------------------------------------------------------------------------------- cache and storage

STEPS = 'call echo {"words": "a"}\n---\ncall echo {"words": "b"}\n---\nsay Done.\n---\nsay Again.'


def test_prompt_is_marked_and_read_from_the_cache_up_to_the_last_request(tmp_path: Path):
    log = InMemoryLog(Conversation(system="Be brief. " * 2_000))
    provider, _, events = ask("anthropic", STEPS, tmp_path, "Go", "More", log=log)
    assert [request.status for request in provider.requests] == [200] * 4
    for request in provider.requests:
        assert request.body is not None
        assert str(request.body).count("cache_control") in (2, 3, 4)
        assert "cache_control" in request.body["tools"][-1]
        assert request.body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    usages = [event.usage for event in events if isinstance(event, ReplyReceived) and event.usage is not None]
    assert len(usages) == 4
    assert usages[0].cache_read == 0
    for before, usage in pairwise(usages):
        assert usage.cache_read == before.cache_read + before.cache_write
        assert usage.cache_write < 200


@pytest.mark.parametrize("name", ["openai", "own"])
def test_openai_gets_one_cache_key_for_a_conversation_and_other_servers_none(name: str, tmp_path: Path):
    endpoint = {"model": "gpt-5.6-terra", "provider": name}
    provider, _, _ = ask("openai-responses", STEPS, tmp_path, "Go", "More", endpoint=endpoint)
    keys = {(request.body or {}).get("prompt_cache_key") for request in provider.requests}
    assert len(keys) == 1
    assert (keys == {None}) is (name == "own")


@pytest.mark.parametrize("stored", [False, True])
def test_nothing_is_stored_at_foundry_unless_requested(stored: bool, tmp_path: Path):
    options = Options(vendor_options={"store": True}) if stored else Options()
    provider, ended, _ = ask("azure-foundry", STEPS, tmp_path, endpoint={"model": "gpt-5"}, options=options)
    assert ended[0].outcome == "answered"
    assert {(request.body or {}).get("store", True) for request in provider.requests} == {stored}


@pytest.mark.parametrize(("options", "stored"), [(Options(), False), (Options(vendor_options={"store": True}), True)])
def test_nothing_is_stored_at_openai_unless_requested(options: Options, stored: bool, tmp_path: Path):
    script = "think Hm.\n" + STEPS
    provider, ended, _ = ask(
        "openai-responses", script, tmp_path, "Go", "More", endpoint={"model": "gpt-5.6-terra"}, options=options
    )
    assert [each.outcome for each in ended] == ["answered"] * 2, ended
    for request in provider.requests:
        assert request.body is not None
        assert request.body["store"] is stored
        assert request.body.get("include") == (None if stored else ["reasoning.encrypted_content"])
    reasoning = [item for item in (provider.requests[-1].body or {})["input"] if item.get("type") == "reasoning"]
    assert len(reasoning) == 1

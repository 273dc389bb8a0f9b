"""What emulated providers read from their prompt caches, write to them, and report; time is a counter of the test."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from segue.canonical.request import Usage
from segue.emulator import Emulator, start
from tests.emulator.http_requests import APIS, conversation, reply_of, send_request
from tests.emulator.http_requests import body_of as render_body

LONG = "How is the weather in Lisbon? " * 1600
MARK = {"type": "ephemeral"}
MARKED = ("anthropic", "bedrock")
MINUTE = 60.0
every_api = pytest.mark.parametrize("api", APIS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def body_of(api: str, *texts: str, model: str | None = None, marker: dict[str, Any] | None = None) -> dict[str, Any]:
    """A body with these messages of user and assistant; Claude's have a marker at their end."""
    chat = conversation(texts[0])
    for place, text in enumerate(texts[1:]):
        (chat.add_user if place % 2 else chat.add_assistant)(text)
    body = render_body(api, chat, model=model)
    if api == "anthropic":
        body["cache_control"] = {**MARK, **(marker or {})}
    elif api == "bedrock":
        body["messages"][-1]["content"].append({"cachePoint": {"type": "default", **(marker or {})}})
    return body


def bill(emulator: Emulator, body: dict[str, Any], *, stream: bool = False, key: str = "segue-emulator") -> Usage:
    if stream and emulator.api in ("openai-chat", "qwen"):
        body = {**body, "stream_options": {"include_usage": True}}
    seen = send_request(emulator, body, stream=stream, key=key)
    assert seen.status == 200, seen.data
    usage = reply_of(emulator, seen, stream=stream).usage
    assert usage is not None
    return usage


def raw_usages(emulator: Emulator, body: dict[str, Any], *, stream: bool = False) -> list[dict[str, Any]]:
    """The usage of a reply as it was sent: one, or those of the events of a stream."""
    if not stream:
        return [send_request(emulator, body).json["usage"]]
    data = send_request(emulator, body, stream=True).data
    lines = [msgspec.json.decode(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")]
    owners = [line.get("message") or line.get("response") or line for line in lines]
    return [owner["usage"] for owner in owners if owner.get("usage")]


def read_after(api: str, seconds: float, *, model: str | None = None, **options: Any) -> int:
    """The tokens that a second request reads so long after the first."""
    clock, marker = Clock(), options.pop("marker", None)
    with start(api, clock=clock) as emulator:
        bodies = [
            {**body_of(api, *texts, model=model, marker=marker), **options} for texts in ([LONG], [LONG, "A", "B"])
        ]
        bill(emulator, bodies[0])
        clock.now += seconds
        return bill(emulator, bodies[1]).cache_read


@both_ways
@every_api
def test_second_request_reads_the_prompt_of_the_first(api: str, *, stream: bool) -> None:
    with start(api) as emulator:
        first = bill(emulator, body_of(api, LONG), stream=stream)
        second = bill(emulator, body_of(api, LONG, "Sunny.", "And now?"), stream=stream)
        again = bill(emulator, body_of(api, LONG, "Sunny.", "And now?"), stream=stream)
        kept = [(record.messages, record.kept) for record in emulator.requests]
    step = {"mistral": 64, "deepseek": 64, "kimi": 256}.get(api, 1)
    assert first.input > 10_000
    assert (first.cache_read, second.cache_read) == (0, first.input // step * step)
    assert again.cache_read == second.input // step * step
    bills_writes = api in (*MARKED, "openai-responses")
    assert first.cache_write == (first.input if bills_writes else 0)
    assert second.cache_write == (second.input - first.input if bills_writes else 0)
    assert again.cache_write == 0
    assert kept == [(1, 0), (3, 1), (3, 3)]


@every_api
def test_caches_are_those_of_an_account_and_a_model(api: str) -> None:
    other = {"bedrock": "us.anthropic.claude-opus-4-8", "anthropic": "claude-opus-4-8"}.get(api)
    with start(api) as emulator:
        body = body_of(api, LONG)
        assert bill(emulator, body).cache_read == 0
        assert bill(emulator, body, key="two").cache_read == 0
        if other:
            assert bill(emulator, body_of(api, LONG, model=other)).cache_read == 0
        assert bill(emulator, body).cache_read > 0


def test_models_count_tokens_differently() -> None:
    with start("anthropic") as emulator:
        models = ["claude-sonnet-5", "claude-opus-5", "claude-opus-4-8", "claude-fable-5"]
        counts = {bill(emulator, body_of("anthropic", LONG, model=model)).input for model in models}
        cached = {bill(emulator, body_of("anthropic", LONG, model=model)).cache_read for model in models}
    assert len(counts) > 1
    assert cached == counts


@every_api
def test_prompt_without_marker_is_not_cached_by_claude(api: str) -> None:
    with start(api) as emulator:
        body = body_of(api, LONG)
        body.pop("cache_control", None)
        if api == "bedrock":
            body["messages"][-1]["content"].pop()
        usages = [bill(emulator, body) for _ in range(2)]
    assert [usage.cache_read > 0 for usage in usages] == [False, api not in MARKED]
    assert usages[1].cache_write == 0


@pytest.mark.parametrize(
    ("api", "model", "minimum"),
    [
        *(
            ("anthropic", name, 512)
            for name in ("claude-opus-5", "claude-fable-5", "claude-fable-5-1", "claude-mythos-5")
        ),
        *(("anthropic", f"claude-{name}", 1024) for name in ("opus-4-8", "sonnet-5", "sonnet-4-6", "sonnet-4-5")),
        ("anthropic", "claude-opus-4-7", 2048),
        *(("anthropic", f"claude-{name}", 4096) for name in ("opus-4-6", "opus-4-5", "haiku-4-5")),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1024),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096),
        ("openai-responses", "gpt-5.6-sol", 1024),
        ("openai-responses", "gpt-6-luna", 1024),
        ("openai-chat", "gpt-5.4", 1024),
        ("gemini", "gemini-3-flash-preview", 1024),
        ("gemini", "gemini-3-pro-preview", 4096),
        ("deepseek", "deepseek-chat", 64),
        ("kimi", "kimi-k2.6", 256),
        ("qwen", "qwen-plus", 1024),
    ],
)
def test_minimum(api: str, model: str, minimum: int) -> None:
    """Prompts from half to twice the minimum: those of at least the minimum are cached."""
    seen = set[bool]()
    with start(api, strict=False) as emulator:
        for length in range(minimum // 2, minimum * 2, max(16, minimum // 16)):
            body = body_of(api, f"{length} " + "wor " * length, model=model)
            body.pop("tools", None)
            body.pop("toolConfig", None)
            first, second = bill(emulator, body), bill(emulator, body)
            assert (second.cache_read > 0) == (first.input >= minimum)
            seen.add(second.cache_read > 0)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("api", "model", "seconds", "options"),
    [
        ("anthropic", None, 5 * MINUTE, {}),
        ("anthropic", None, 60 * MINUTE, {"marker": {"ttl": "1h"}}),
        ("bedrock", None, 5 * MINUTE, {}),
        ("bedrock", None, 60 * MINUTE, {"marker": {"ttl": "1h"}}),
        ("openai-responses", "gpt-5.6-sol", 30 * MINUTE, {}),
        ("openai-responses", "gpt-5.6-sol", 720 * MINUTE, {"prompt_cache_options": {"ttl": "12h"}}),
        ("openai-chat", "gpt-5.4", 5 * MINUTE, {}),
        ("openai-chat", "gpt-5.4", 1440 * MINUTE, {"prompt_cache_retention": "24h"}),
        ("kimi", None, 5 * MINUTE, {}),
        ("kimi", None, 60 * MINUTE, {"prompt_cache_options": {"ttl": "1h"}}),
        ("qwen", None, 5 * MINUTE, {}),
    ],
)
def test_lifetime(api: str, model: str | None, seconds: float, options: dict[str, Any]) -> None:
    assert read_after(api, seconds - 1, model=model, **dict(options)) > 10_000
    assert read_after(api, seconds + 1, model=model, **dict(options)) == 0


@pytest.mark.parametrize("api", ["gemini", "deepseek", "mistral"])
def test_lifetime_of_hours(api: str) -> None:
    assert read_after(api, 100 * MINUTE) > 10_000


@pytest.mark.parametrize("api", ["anthropic", "bedrock", "openai-responses", "kimi", "qwen"])
def test_use_begins_the_lifetime_anew(api: str) -> None:
    clock, body = Clock(), body_of(api, LONG)
    with start(api, clock=clock) as emulator:
        reads = list[bool]()
        for _ in range(4):
            reads.append(bill(emulator, body).cache_read > 0)
            clock.now += 4 * MINUTE
        clock.now += 60 * MINUTE
        reads.append(bill(emulator, body).cache_read > 0)
    assert reads == [False, True, True, True, False]


def marked_body(*marks: int, blocks: int, ttl: str | None = None) -> dict[str, Any]:
    """A body of blocks, of which these have a marker; `ttl` is that of the first."""
    content: list[dict[str, Any]] = [{"type": "text", "text": f"{number} " * 2000} for number in range(blocks)]
    for place, number in enumerate(marks):
        content[number]["cache_control"] = {**MARK, "ttl": ttl} if ttl and not place else MARK
    return {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(("blocks", "is_found"), [(21, True), (22, False)])
def test_marker_looks_back_twenty_blocks(blocks: int, is_found: bool) -> None:
    with start("anthropic") as emulator:
        first = bill(emulator, marked_body(0, blocks=1))
        second = bill(emulator, marked_body(blocks - 1, blocks=blocks))
    assert second.cache_read == (first.input if is_found else 0)


def test_of_several_markers_each_is_written() -> None:
    with start("anthropic") as emulator:
        whole = bill(emulator, marked_body(1, 3, blocks=5))
        assert (whole.cache_read, whole.cache_write < whole.input) == (0, True)
        shorter = bill(emulator, marked_body(1, blocks=2))
        assert (shorter.cache_read, shorter.cache_write) == (shorter.input, 0)
        changed = marked_body(3, blocks=5)
        changed["messages"][0]["content"][3]["text"] = "Something else."
        usage = bill(emulator, changed)
    assert usage.cache_read == shorter.input
    assert usage.cache_write > 0


@pytest.mark.parametrize("field", ["tools", "system"])
@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "openai-responses"])
def test_change_before_the_messages_invalidates_all(api: str, field: str) -> None:
    with start(api, strict=False) as emulator:
        body = body_of(api, LONG)
        bill(emulator, body)
        assert bill(emulator, body).cache_read > 0
        if field == "tools":
            changed = {**body, "tools": body["tools"][::-1]}
        elif api == "openai-chat":
            changed = {**body, "messages": [{"role": "system", "content": "Be brief."}, *body["messages"]]}
        else:
            changed = {**body, "instructions" if api == "openai-responses" else "system": "Be brief."}
        assert bill(emulator, changed).cache_read == 0


@pytest.mark.parametrize(
    ("api", "model", "change"),
    [
        ("anthropic", "claude-sonnet-5", {"output_config": {"effort": "low"}}),
        ("anthropic", "claude-sonnet-5", {"thinking": {"type": "adaptive"}}),
        ("openai-responses", "gpt-5.6-sol", {"reasoning": {"effort": "high"}}),
        ("openai-responses", "gpt-5.6-sol", {"text": {"verbosity": "low"}}),
        ("openai-responses", "gpt-5.6-sol", {"text": {"format": {"type": "json_object"}}}),
        ("openai-responses", "gpt-5.6-sol", {"service_tier": "flex"}),
        ("openai-responses", "gpt-5.6-sol", {"prompt_cache_key": "k"}),
    ],
)
def test_setting_that_breaks_the_cache(api: str, model: str, change: dict[str, Any]) -> None:
    with start(api, strict=False) as emulator:
        body = body_of(api, LONG, model=model)
        bill(emulator, body)
        assert bill(emulator, {**body, **change}).cache_read == 0
        assert bill(emulator, {**body, "temperature": 0.5}).cache_read > 0


def test_explicit_breakpoints_of_openai() -> None:
    """With the mode `explicit` only blocks with a breakpoint end a cached prefix."""
    part = {"type": "input_text", "text": LONG}
    marked = {**part, "prompt_cache_breakpoint": {"mode": "explicit"}}
    last = {"type": "input_text", "text": "And now?"}
    options = {"prompt_cache_options": {"mode": "explicit"}}

    def body(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return {"model": "gpt-5.6-sol", "input": [{"role": "user", "content": list(content)}], **changes}

    with start("openai-responses", strict=False) as emulator:
        unmarked = bill(emulator, body(part, last, **options))
        first = bill(emulator, body(marked, last, **options))
        second = bill(emulator, body(marked, {**last, "text": "Something else."}, **options))
    assert (unmarked.cache_read, unmarked.cache_write) == (0, 0)
    assert 0 < first.cache_write < first.input
    assert (second.cache_read, second.cache_write) == (first.cache_write, 0)


def test_markers_of_qwen_exclude_the_implicit_cache() -> None:
    marked = {"type": "text", "text": LONG, "cache_control": MARK}

    def body(*texts: str) -> dict[str, Any]:
        rest = [{"type": "text", "text": text} for text in texts]
        return {"model": "qwen-plus", "messages": [{"role": "user", "content": [marked, *rest]}]}

    with start("qwen", strict=False) as emulator:
        first, second = bill(emulator, body("A")), bill(emulator, body("A", "B"))
        (usage,) = raw_usages(emulator, body("C"))
        (new,) = raw_usages(emulator, {**body("C"), "model": "qwen-max"})
    assert 0 < first.cache_write < first.input
    assert (second.cache_read, second.cache_write) == (first.cache_write, 0)
    assert usage["prompt_tokens_details"] == {"cached_tokens": first.cache_write}
    details = new["prompt_tokens_details"]
    assert details["cache_creation_input_tokens"] == details["cache_creation"]["ephemeral_5m_input_tokens"] > 0
    assert details["cached_tokens"] == 0


# ------------------------------------------------------------------------------------------------------- usage fields


@both_ways
def test_anthropic_splits_writes_by_lifetime(*, stream: bool) -> None:
    with start("anthropic") as emulator:
        usages = raw_usages(emulator, marked_body(1, 3, blocks=5, ttl="1h"), stream=stream)
    usage = usages[0]
    split = usage["cache_creation"]
    assert split["ephemeral_1h_input_tokens"] > split["ephemeral_5m_input_tokens"] - 3 > 0
    assert sum(split.values()) == usage["cache_creation_input_tokens"]
    assert usage["input_tokens"] > 0
    # The end of a stream has the sums only.
    assert [set(each) for each in usages[1:]] == [set(usage) - {"cache_creation"}] * stream


@both_ways
def test_responses_split_writes_by_lifetime(*, stream: bool) -> None:
    with start("openai-responses") as emulator:
        body = body_of("openai-responses", LONG, model="gpt-5.6-sol")
        first, second = (raw_usages(emulator, body, stream=stream)[-1] for _ in range(2))
    details = first["input_tokens_details"]
    assert details["cache_write_tokens"] == first["input_tokens"]
    assert details["cache_write_tokens_details"] == {"ttl_30m_tokens": first["input_tokens"], "ttl_12h_tokens": 0}
    assert second["input_tokens_details"] == {"cached_tokens": first["input_tokens"], "cache_write_tokens": 0}


@both_ways
def test_deepseek_counts_hits_and_misses(*, stream: bool) -> None:
    with start("deepseek") as emulator:
        first, second = (raw_usages(emulator, body_of("deepseek", LONG), stream=stream)[-1] for _ in range(2))
    assert (first["prompt_cache_hit_tokens"], first["prompt_cache_miss_tokens"]) == (0, first["prompt_tokens"])
    hit = second["prompt_cache_hit_tokens"]
    assert 0 < hit == second["prompt_tokens"] - second["prompt_cache_miss_tokens"]
    assert hit == second["prompt_tokens_details"]["cached_tokens"]


@both_ways
def test_kimi_has_cached_tokens_twice(*, stream: bool) -> None:
    with start("kimi") as emulator:
        _, usage = (raw_usages(emulator, body_of("kimi", LONG), stream=stream)[-1] for _ in range(2))
    assert usage["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] > 0
    assert usage["cached_tokens"] % 256 == 0


def test_bedrock_details_writes_by_lifetime() -> None:
    body = body_of("bedrock", LONG, marker={"ttl": "1h"})
    with start("bedrock") as emulator:
        first, second = (raw_usages(emulator, body)[0] for _ in range(2))
    assert first["cacheDetails"] == [{"ttl": "1h", "inputTokens": first["cacheWriteInputTokens"]}]
    assert "cacheDetails" not in second
    assert first["inputTokens"] == 0
    assert second["cacheReadInputTokens"] == first["cacheWriteInputTokens"]

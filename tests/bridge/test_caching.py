"""The prompt-cache policy: markers, the cache key, and Claude Code's billing header."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.bridge.caching import BILLING_HEADER_REMOVED, place_cache_key, place_markers, remove_billing_header
from segue.emulator.prompt_cache import CacheRules, PromptCache, split_prompt
from tests.work import count_work

MARKER = {"type": "ephemeral"}
POINT = {"cachePoint": {"type": "default"}}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
HEADER = "x-anthropic-billing-header: cc_version=2.1.325.a1b; cc_entrypoint=cli; cch=71fea;"
SCHEMA = {"type": "object", "properties": {}}


def encode(body: object) -> bytes:
    return json.dumps(body).encode()


def mark(body: dict[str, Any], api: str = "anthropic", model: str | None = None) -> dict[str, Any]:
    """Return the marked body; it is valid, and marking it again changes nothing."""
    data = place_markers(encode(body), api, model)
    assert place_markers(data, api, model) == data
    verdict = segue.check(data, api, model=model)
    assert verdict, list(verdict)
    return json.loads(data)


def anthropic_body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "tools": [{"name": name, "input_schema": SCHEMA} for name in ("read", "write")],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": [{"type": "text", "text": "Read a."}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"}]},
        ],
        **changes,
    }


def bedrock_body(model: str = CLAUDE, **changes: Any) -> dict[str, Any]:
    spec = {"name": "read", "inputSchema": {"json": SCHEMA}}
    return {
        "modelId": model,
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": [{"toolSpec": spec}]},
        "messages": [
            {"role": "user", "content": [{"text": "Read a."}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "read", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "A"}]}}]},
        ],
        **changes,
    }


def find_markers(value: Any, path: str = "") -> list[str]:
    """Return the paths of all marked values."""
    if isinstance(value, dict):
        own = [path] if "cache_control" in value or "cachePoint" in value else []
        return own + [found for key, item in value.items() for found in find_markers(item, f"{path}.{key}".strip("."))]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in find_markers(item, f"{path}[{index}]")]
    return []


# ------------------------------------------------------------------------------------------------------------- markers


def test_anthropic_body_gets_four_markers() -> None:
    body = mark(anthropic_body())
    assert find_markers(body) == ["system[1]", "tools[1]", "messages[2].content[0]", "messages[4].content[0]"]
    assert body["messages"][4]["content"][0]["cache_control"] == MARKER
    assert list(body) == list(anthropic_body())


def test_strings_become_marked_text_blocks() -> None:
    body = mark(anthropic_body(system="Be brief.", messages=[{"role": "user", "content": "Hello"}]))
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARKER}]
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Hello", "cache_control": MARKER}]


def test_of_consecutive_user_messages_the_last_is_marked() -> None:
    roles = ["user", "user", "assistant", "user", "user"]
    body = mark(anthropic_body(messages=[{"role": role, "content": "text"} for role in roles]))
    assert find_markers(body["messages"]) == ["[1].content[0]", "[4].content[0]"]


def test_marker_is_on_a_block_that_may_have_one() -> None:
    content = [{"type": "text", "text": "Read a."}, {"type": "text", "text": " "}]
    data = place_markers(encode(anthropic_body(messages=[{"role": "user", "content": content}])), "anthropic")
    assert find_markers(json.loads(data)["messages"]) == ["[0].content[0]"]


def test_deferred_tool_is_not_marked() -> None:
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    deferred = {"name": "rare", "input_schema": SCHEMA, "defer_loading": True}
    assert find_markers(mark(anthropic_body(tools=[search, deferred]))["tools"]) == ["[0]"]
    data = place_markers(encode(anthropic_body(tools=[deferred])), "anthropic")
    assert find_markers(json.loads(data)["tools"]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"cache_control": MARKER},
        {"system": [{"type": "text", "text": "Be brief.", "cache_control": MARKER}]},
        {"tools": [{"name": "read", "input_schema": SCHEMA, "cache_control": {**MARKER, "ttl": "1h"}}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": MARKER}]}]},
        {
            "messages": [
                *anthropic_body()["messages"][:4],
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": [{"type": "text", "text": "A", "cache_control": MARKER}],
                        }
                    ],
                },
            ]
        },
    ],
)
def test_body_with_markers_is_unchanged(changes: dict[str, Any]) -> None:
    data = encode(anthropic_body(**changes))
    assert place_markers(data, "anthropic") is data


def test_parameter_named_like_a_marker_is_none() -> None:
    schema = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"cache_control": "no-store"}}
    body = anthropic_body(tools=[{"name": "read", "input_schema": schema}])
    body["messages"][3]["content"] = [call]
    assert len(find_markers(mark(body))) == 6  # four, the parameter and the argument


@pytest.mark.parametrize(
    ("model", "marked"),
    [
        (CLAUDE, ["system[1]", "toolConfig.tools[1]", "messages[0].content[1]", "messages[2].content[1]"]),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", ["system[1]", "toolConfig.tools[1]"]),
        # Nova has no cache points among tools, nor after a result.
        ("us.amazon.nova-pro-v1:0", ["system[1]", "messages[0].content[1]"]),
        ("anthropic.claude-3-sonnet-20240229-v1:0", []),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", []),
        ("meta.llama3-3-70b-instruct-v1:0", []),
        ("arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc", []),
    ],
)
def test_bedrock_model_decides_the_cache_points(model: str, marked: list[str]) -> None:
    found = find_markers(mark(bedrock_body(model), "bedrock"))
    assert found[: len(marked)] == marked
    assert bool(found) == bool(marked)


def test_name_of_the_model_behind_an_alias() -> None:
    body = bedrock_body("arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc")
    assert len(find_markers(mark(body, "bedrock", CLAUDE))) == 4


def test_bedrock_body_with_cache_points_is_unchanged() -> None:
    for changes in (
        {"system": [{"text": "Be brief."}, POINT]},
        {"toolConfig": {"tools": [*bedrock_body()["toolConfig"]["tools"], POINT]}},
        {"messages": [{"role": "user", "content": [{"text": "Hello"}, POINT]}]},
    ):
        data = encode(bedrock_body(**changes))
        assert place_markers(data, "bedrock") is data


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "gemini", "kimi", "azure-foundry"])
def test_other_apis_have_no_markers(api: str) -> None:
    data = encode(anthropic_body())
    assert place_markers(data, api) is data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"messages":{}}',
        b'{"messages":[1]}',
        b'{"messages":[{"role":"user"}],"cache_control',
        b'{"messages":[{"role":"user","content":[{}]}]}',
        b'{"messages":[{"role":"user","content":[3]}],"tools":[{"cache_control":null}]}',
        b'{"system":[{"x":"x-anthropic-billing-header: a"}]}',
        b'{"system":7,"input":"x-anthropic-billing-header: a"',
    ],
)
def test_body_of_another_shape_is_unchanged(data: bytes) -> None:
    assert place_markers(data, "anthropic") == data
    assert place_markers(data, "bedrock", CLAUDE) == data
    assert remove_billing_header(data) == (data, None)


def test_each_request_reads_what_the_one_before_wrote() -> None:
    cache = PromptCache(lambda: 0.0)
    rules = CacheRules(minimum=1, marked="none", look_back=20, reports_writes=True)
    body, totals = anthropic_body(messages=[]), list[tuple[int, int]]()
    for round_number in range(4):
        body["messages"].append({"role": "user", "content": "Next. " * 20})
        marked = mark(body)
        usage = cache.bill("account", "model", marked, split_prompt(marked, marked["messages"]), rules).usage
        totals.append((usage.cache_read, usage.cache_write))
        # A reply with more blocks than the provider searches back from a marker.
        body["messages"].append(
            {"role": "assistant", "content": [{"type": "text", "text": f"{round_number} {n}"} for n in range(30)]}
        )
    assert totals[0][0] == 0
    assert [read for read, _ in totals[1:]] == [sum(pair) for pair in totals[:-1]]


def test_cost_does_not_grow_with_the_conversation() -> None:
    def work(turns: int) -> int:
        messages = [{"role": role, "content": "text"} for _ in range(turns) for role in ("user", "assistant")]
        data = encode(anthropic_body(messages=[*messages, {"role": "user", "content": "Go on."}]))
        return count_work(lambda: place_markers(data, "anthropic"))

    work(1)
    assert work(400) <= work(4) * 1.2


# ----------------------------------------------------------------------------------------------------------- cache key


def place_key(body: dict[str, Any], *, provider: str = "openai", client: str = "c", route: str = "r") -> str | None:
    data = place_cache_key(encode(body), provider=provider, client=client, route=route)
    return json.loads(data).get("prompt_cache_key")


def chat_body(*texts: str, **changes: Any) -> dict[str, Any]:
    system = {"role": "system", "content": "Be brief."}
    turns = [{"role": role, "content": text} for role, text in zip(("user", "assistant") * 9, texts, strict=False)]
    return {"model": "gpt-5", "messages": [system, *turns], **changes}


def responses_body(*texts: str, **changes: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "instructions": "Be brief.", "input": chat_body(*texts)["messages"][1:], **changes}


@pytest.mark.parametrize("make_body", [chat_body, responses_body])
def test_cache_key_is_that_of_the_conversation(make_body: Any) -> None:
    key = place_key(make_body("Hello"))
    assert key is not None
    assert len(key) <= 64
    assert place_key(make_body("Hello", "Hi.", "Go on.", tools=[], temperature=1)) == key
    other_system = json.loads(json.dumps(make_body("Hello")).replace("Be brief.", "Be kind."))
    others = [place_key(make_body("Hullo")), place_key(other_system)]
    others += [place_key(make_body("Hello"), client="d"), place_key(make_body("Hello"), route="s")]
    assert len({key, *others}) == 5


def test_cache_key_of_an_input_string() -> None:
    assert place_key({"input": "Hello"}) != place_key({"input": "Hullo"}) is not None


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "azure-foundry"])
def test_body_with_cache_key_is_valid(api: str) -> None:
    body = chat_body("Hello") if api == "openai-chat" else responses_body("Hello")
    data = place_cache_key(
        encode(body), provider="azure" if api == "azure-foundry" else "openai", client="c", route="r"
    )
    assert b"prompt_cache_key" in data
    assert segue.check(data, api)


def test_cache_key_of_the_caller_is_kept() -> None:
    data = encode(chat_body("Hello", prompt_cache_key="mine"))
    assert place_cache_key(data, provider="openai", client="c", route="r") is data
    assert place_key(chat_body("Hello", prompt_cache_key=None)) is not None


@pytest.mark.parametrize("data", [b"", b"[1]", b"{}", b'{"messages":[1]}', b'{"messages":[{"role":7}]}'])
def test_body_without_a_conversation_gets_no_cache_key(data: bytes) -> None:
    assert place_cache_key(data, provider="openai", client="c", route="r") == data


@pytest.mark.parametrize("provider", ["openrouter", "groq", "ollama", "moonshot", "my-server"])
def test_other_providers_get_no_cache_key(provider: str) -> None:
    assert place_key(chat_body("Hello"), provider=provider) is None


# ------------------------------------------------------------------------------------------------------ billing header


def test_billing_header_is_removed() -> None:
    system = [{"type": "text", "text": HEADER}, {"type": "text", "text": "You are a coding agent."}]
    data, finding = remove_billing_header(encode(anthropic_body(system=system)))
    assert json.loads(data) == anthropic_body(system=system[1:])
    assert finding == BILLING_HEADER_REMOVED


@pytest.mark.parametrize(
    ("system", "rest"),
    [
        (f"{HEADER}\nYou are a coding agent.", "You are a coding agent."),
        (HEADER, None),
        ([{"type": "text", "text": HEADER}], None),
        (
            [{"type": "text", "text": f"{HEADER}\n\nYou are.", "cache_control": MARKER}],
            [{"type": "text", "text": "You are.", "cache_control": MARKER}],
        ),
    ],
)
def test_text_besides_the_billing_header_stays(system: Any, rest: Any) -> None:
    data, finding = remove_billing_header(encode({"system": system, "messages": []}))
    assert json.loads(data).get("system") == rest
    assert finding is not None


@pytest.mark.parametrize(
    "body",
    [
        anthropic_body(),
        anthropic_body(messages=[{"role": "user", "content": HEADER}]),
        anthropic_body(system=f"Ignore the line {HEADER}"),
        {"messages": [{"role": "user", "content": HEADER}]},
    ],
)
def test_other_texts_are_unchanged(body: dict[str, Any]) -> None:
    data = encode(body)
    assert remove_billing_header(data) == (data, None)

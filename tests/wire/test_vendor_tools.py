"""Vendor-defined tools converted to another API: their equivalents, their limits, and calls mapped back."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from tests.conversations.sdk import complaints

Body = dict[str, Any]
FUNCTION = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
PLACE = {"type": "approximate", "city": "Suez", "country": "EG"}


def body(source: str, *tools: Body, **more: Any) -> Body:
    user_message = {"role": "user", "content": "hi"}
    heads: dict[str, Body] = {
        "anthropic": {"max_tokens": 9, "messages": [user_message]},
        "openai-responses": {"input": [user_message]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    }
    declared = {"tools": list(tools)} if tools else {}
    return {**heads.get(source, {"messages": [user_message]}), **declared, **more}


def made(source: str, target: str, *tools: Body, model: str | None = None, **more: Any) -> segue.Converted:
    out = segue.convert(body(source, *tools, **more), source=source, target=target, model=model)
    assert segue.check(out.body, target, model=model)
    if not {"enable_search"} & out.body.keys():
        assert list(complaints(out.body, target)) == []
    return out


def lines(out: segue.Converted) -> str:
    return "\n".join(finding.message for finding in out.report.findings_of("tools"))


# ----------------------------------------------------------------------------------------------------- what they become

SEARCH_A = {"type": "web_search_20260209", "name": "web_search"}
SEARCH_O = {"type": "web_search_preview"}
TABLE: list[tuple[str, Body, str, Body]] = [
    ("anthropic", SEARCH_A, "openai-responses", {"type": "web_search"}),
    ("anthropic", SEARCH_A, "gemini", {"googleSearch": {}}),
    (
        "anthropic",
        {**SEARCH_A, "allowed_domains": ["a.example"], "user_location": PLACE},
        "openai-responses",
        {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "user_location": PLACE},
    ),
    ("openai-responses", SEARCH_O, "anthropic", {"type": "web_search_20250305", "name": "web_search"}),
    ("gemini", {"google_search": {}}, "openai-responses", {"type": "web_search"}),
    (
        "anthropic",
        {"type": "code_execution_20260521", "name": "code_execution"},
        "openai-responses",
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ),
    ("openai-responses", {"type": "shell", "environment": {"type": "container_auto"}}, "gemini", {"codeExecution": {}}),
    ("gemini", {"urlContext": {}}, "anthropic", {"type": "web_fetch_20250910", "name": "web_fetch"}),
    ("anthropic", {"type": "web_fetch_20260309", "name": "web_fetch"}, "gemini", {"urlContext": {}}),
    (
        "anthropic",
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        "openai-responses",
        {"type": "tool_search"},
    ),
    (
        "kimi",
        {"type": "builtin_function", "function": {"name": "$web_search"}},
        "openai-responses",
        {"type": "web_search"},
    ),
]


@pytest.mark.parametrize(("source", "given", "target", "written"), TABLE)
def test_equivalent_tool_is_declared_and_reported(source: str, given: Body, target: str, written: Body) -> None:
    out = made(source, target, given, model="gpt-5.4" if target == "openai-responses" else None)
    assert out.body["tools"] == [written]
    assert " declared as " in lines(out)
    same_api = body(source, given)
    assert segue.convert(same_api, source=source, target=source).body == same_api


@pytest.mark.parametrize("target", ["openai-chat", "mistral", "kimi", "deepseek"])
def test_missing_equivalent_is_reported(target: str) -> None:
    out = made("anthropic", target, SEARCH_A, FUNCTION)
    assert len(out.body["tools"]) == 1
    assert "hosted tool web_search not declared: the target has no such tool" in lines(out)


def test_unsupported_options_are_reported() -> None:
    out = made("anthropic", "gemini", {**SEARCH_A, "max_uses": 2, "blocked_domains": ["b.example"]})
    assert "`max_uses`" in lines(out)
    assert "`blocked_domains`" in lines(out)


def test_search_as_a_body_option() -> None:
    options = {"user_location": {"type": "approximate", "approximate": {"city": "Suez", "country": "EG"}}}
    out = made("openai-chat", "anthropic", web_search_options=options, model=None)
    assert out.body["tools"] == [{"type": "web_search_20250305", "name": "web_search", "user_location": PLACE}]
    back = made("anthropic", "openai-chat", {**SEARCH_A, "user_location": PLACE}, model="gpt-5-search-api")
    assert back.body["web_search_options"] == options
    qwen = made("anthropic", "qwen", SEARCH_A)
    assert qwen.body["enable_search"] is True
    assert made("qwen", "gemini", enable_search=True).body["tools"] == [{"googleSearch": {}}]
    assert "tools" not in made("qwen", "gemini", enable_search=False).body


# ----------------------------------------------------------------------------------------------------- beside functions


def test_gemini_3_supports_them_beside_functions() -> None:
    newer = made("anthropic", "gemini", SEARCH_A, FUNCTION)
    assert newer.body["toolConfig"] == {"includeServerSideToolInvocations": True}
    older = made("anthropic", "gemini", SEARCH_A, FUNCTION, model="gemini-2.5-flash")
    assert [list(tool) for tool in older.body["tools"]] == [["functionDeclarations"]]
    assert "together with functions" in lines(older)
    alone = made("anthropic", "gemini", SEARCH_A, model="gemini-2.5-flash")
    assert alone.body["tools"] == [{"googleSearch": {}}]
    assert "enable_search" not in made("anthropic", "qwen", SEARCH_A, FUNCTION).body


def test_tool_choice_among_hosted_tools() -> None:
    chosen = {"type": "tool", "name": "web_search"}
    assert "toolConfig" not in made("anthropic", "gemini", SEARCH_A, tool_choice=chosen).body
    out = made("openai-responses", "anthropic", SEARCH_O, tool_choice={"type": "web_search_preview"})
    assert out.body["tool_choice"] == chosen


def test_duplicate_kind_is_dropped() -> None:
    out = made("openai-responses", "anthropic", SEARCH_O, {"type": "web_search"})
    assert len(out.body["tools"]) == 1
    clash = made("openai-responses", "anthropic", SEARCH_O, {**FLAT, "name": "web_search"})
    assert [tool.get("type") for tool in clash.body["tools"]] == [None]


# ---------------------------------------------------------------------------------------------------------- MCP servers

FLAT = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
SERVER = {"type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example/mcp"}


def test_mcp_server_and_its_tools() -> None:
    given = {**SERVER, "require_approval": "never", "authorization": "token", "allowed_tools": ["ask"]}
    there = made("openai-responses", "anthropic", given).body
    server = {"type": "url", "name": "wiki", "url": "https://wiki.example/mcp", "authorization_token": "token"}
    assert there["mcp_servers"] == [server]
    back = made("anthropic", "openai-responses", *there["tools"], mcp_servers=there["mcp_servers"]).body
    assert back["tools"] == [given]


def test_an_older_body_names_servers_and_no_toolset() -> None:
    server = {"type": "url", "name": "wiki", "url": "https://wiki.example/mcp"}
    bound = {**server, "tool_configuration": {"enabled": True, "allowed_tools": ["ask"]}}
    out = made("anthropic", "openai-responses", mcp_servers=[bound])
    assert out.body["tools"] == [{**SERVER, "allowed_tools": ["ask"], "require_approval": "never"}]
    assert "mcp_servers" not in [finding.subject for finding in out.report.findings_of("dropped")]


@pytest.mark.parametrize(
    ("approval", "allowed", "kept"),
    [
        ("never", None, None),
        ({"never": {"tool_names": ["ask", "list"]}}, None, ["ask", "list"]),
        ({"never": {"tool_names": ["ask", "list"]}}, ["ask", "write"], ["ask"]),
        ({"never": {"tool_names": ["ask"]}}, {"tool_names": ["write"]}, []),
        ({"always": {"tool_names": ["write"]}}, None, []),
        ("always", None, []),
        (None, None, []),
    ],
)
def test_tools_that_need_approval_are_not_run_without_it(approval: Any, allowed: Any, kept: list[str] | None) -> None:
    given = {**SERVER, "require_approval": approval, "allowed_tools": allowed}
    out = made("openai-responses", "anthropic", {k: v for k, v in given.items() if v is not None})
    if kept == []:
        assert "mcp_servers" not in out.body
        assert "not declared" in lines(out)
    else:
        configs = {name: {"enabled": True} for name in kept or ()}
        assert out.body["tools"][0].get("configs", {}) == configs
        assert out.body["tools"][0].get("default_config") == ({"enabled": False} if kept else None)


def test_mcp_server_with_unsupported_limits_is_dropped_cross_api() -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "wiki", "configs": {"write": {"enabled": False}}}
    servers = [{"type": "url", "name": "wiki", "url": "https://wiki.example/mcp", "authorization_token": "secret"}]
    for target in ("openai-responses", "gemini"):
        out = made("anthropic", target, toolset, mcp_servers=servers)
        assert "tools" not in out.body
        assert "secret" not in str(out.report.findings)


def test_authorization_token_in_headers() -> None:
    given = {**SERVER, "require_approval": "never", "headers": {"authorization": "Bearer token", "X-Team": "a"}}
    out = made("openai-responses", "anthropic", given)
    assert out.body["mcp_servers"][0]["authorization_token"] == "token"
    assert "`headers`" in lines(out)
    gemini = made("openai-responses", "gemini", given).body["tools"][0]["mcpServers"][0]
    headers = {"X-Team": "a", "Authorization": "Bearer token"}
    assert gemini["streamableHttpTransport"] == {"url": "https://wiki.example/mcp", "headers": headers}


# ---------------------------------------------------------------------------------------------------------- tool search


def test_deferred_tools_stay_deferred_with_tool_search() -> None:
    deferred = {**FUNCTION, "defer_loading": True}
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    out = made("anthropic", "openai-responses", search, deferred, model="gpt-5.4")
    assert [tool.get("defer_loading") for tool in out.body["tools"]] == [True, None]
    assert "defer_loading" not in [finding.subject for finding in out.report.findings_of("dropped")]
    for target, model in (("openai-responses", "gpt-5.1"), ("openai-chat", None), ("gemini", None)):
        older = made("anthropic", target, search, deferred, model=model)
        assert "defer_loading" not in str(older.body)
        assert "defer_loading" in [finding.subject for finding in older.report.findings_of("dropped")]
    claude = made("openai-responses", "anthropic", {"type": "tool_search"}, {**FLAT, "defer_loading": True})
    assert [tool.get("defer_loading") for tool in claude.body["tools"]] == [True, None]
    old = made("openai-responses", "anthropic", {"type": "tool_search"}, FLAT, model="claude-opus-4-1")
    assert len(old.body["tools"]) == 1


# ------------------------------------------------------------------------------------------------- what the client runs

CLIENT_RUN: list[tuple[Body, str, Body, Body]] = [
    (
        {"type": "local_shell"},
        "local_shell",
        {"type": "exec", "command": ["ls"], "env": {}},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    ),
    ({"type": "shell"}, "shell", {"commands": ["ls"]}, {"type": "shell_call", "action": {"commands": ["ls"]}}),
    (
        {"type": "apply_patch"},
        "apply_patch",
        {"type": "delete_file", "path": "a"},
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
    ),
    (
        {"type": "computer"},
        "computer",
        {"actions": [{"type": "wait"}]},
        {"type": "computer_call", "actions": [{"type": "wait"}]},
    ),
    (
        {"type": "computer_use_preview", "display_width": 9, "display_height": 8, "environment": "mac"},
        "computer",
        {"action": {"type": "wait"}},
        {"type": "computer_call", "action": {"type": "wait"}},
    ),
    (
        {
            "type": "tool_search",
            "execution": "client",
            "description": "Finds.",
            "parameters": {"type": "object", "properties": {"goal": {"type": "string"}}},
        },
        "tool_search",
        {"goal": "tides"},
        {"type": "tool_search_call", "arguments": {"goal": "tides"}, "execution": "client"},
    ),
]


def reply(name: str, arguments: Body) -> Body:
    use = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    return {**head, "content": [use], "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


@pytest.mark.parametrize(("tool", "name", "arguments", "item"), CLIENT_RUN)
def test_a_call_comes_back_in_its_own_type(tool: Body, name: str, arguments: Body, item: Body) -> None:
    out = made("openai-responses", "anthropic", tool)
    (declared,) = out.body["tools"]
    assert declared["name"] == name
    assert declared["input_schema"]["properties"].keys() >= arguments.keys()
    (came,) = out.reply(reply(name, arguments))["output"]
    assert {key: came[key] for key in item} == item
    assert came["call_id"].startswith("call_")
    # Sent on, it is the same call with the same arguments.
    again = {**body("openai-responses", tool), "input": [{"role": "user", "content": "hi"}, came]}
    sent = segue.convert(again, source="openai-responses", target="anthropic").body["messages"][1]["content"][0]
    assert (sent["name"], sent["input"]) == (name, arguments)
    # The id was made by segue: it is not sent to the provider.
    assert came["id"] not in str(segue.convert(again, source="openai-responses", target="openai-responses").body)


@pytest.mark.parametrize(("tool", "name", "arguments", "item"), CLIENT_RUN)
def test_a_streamed_call_comes_back_in_its_own_type(tool: Body, name: str, arguments: Body, item: Body) -> None:
    stream = made("openai-responses", "anthropic", tool).stream()
    whole = reply(name, arguments)
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    events = (
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {**whole["content"][0], "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
    frames = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    text = b"".join([*map(stream.feed, frames), stream.close()]).decode()
    sent = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    (done,) = (event["item"] for event in sent if event["type"] == "response.output_item.done")
    assert {key: done[key] for key in item} == item
    assert sent[-1]["response"]["output"] == [done]
    assert not any("arguments" in event["type"] for event in sent)


def test_arguments_unsupported_by_the_item_become_a_function_call() -> None:
    out = made("openai-responses", "anthropic", {"type": "shell"})
    (came,) = out.reply(reply("shell", {"cmd": "ls"}))["output"]
    assert (came["type"], came["name"], came["arguments"]) == ("function_call", "shell", '{"cmd":"ls"}')


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ({"type": "bash_20250124", "name": "bash"}, {"command": "ls"}),
        ({"type": "text_editor_20250124", "name": "str_replace_editor"}, {"command": "undo_edit", "path": "a"}),
        ({"type": "memory_20250818", "name": "memory"}, {"command": "rename", "old_path": "a", "new_path": "b"}),
        (
            {"type": "computer_20251124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
            {"action": "zoom", "region": [0, 0, 9, 9]},
        ),
    ],
)
def test_anthropic_tools_become_functions_cross_api(tool: Body, arguments: Body) -> None:
    out = made("anthropic", "openai-chat", tool)
    (declared,) = out.body["tools"]
    function = declared["function"]
    assert function["name"] == tool["name"]
    assert function["parameters"]["properties"].keys() >= arguments.keys()
    if "display_width_px" in tool:
        assert "display_width_px: 800" in function["description"]
    assert "client-run tool" in lines(out)


def test_function_of_the_same_name_takes_precedence() -> None:
    out = made("openai-responses", "anthropic", {"type": "shell"}, {**FLAT, "name": "shell", "description": "Mine."})
    assert [tool.get("description") for tool in out.body["tools"]] == ["Mine."]


def test_gemini_computer_use_actions() -> None:
    used = {"environment": "ENVIRONMENT_BROWSER", "excludedPredefinedFunctions": ["drag_and_drop"]}
    out = made("gemini", "openai-responses", {"computerUse": used})
    names = [tool["name"] for tool in out.body["tools"]]
    assert "click_at" in names
    assert "drag_and_drop" not in names


def test_bytes_defer_the_same_tools() -> None:
    turns: list[Body] = [{"role": "user", "content": "go"}]
    for number in range(200):
        name = "rare" if number == 100 else "look"
        turns += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"path": "p" * 40}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "r" * 40}],
            },
        ]
    tools = [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        FUNCTION,
        {**FUNCTION, "name": "rare", "defer_loading": True},
        {**FUNCTION, "name": "never", "defer_loading": True},
    ]
    given = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": turns, "tools": tools}
    quick = segue.convert(json.dumps(given).encode(), target="openai-responses", model="gpt-5.4").body
    assert quick == segue.convert(given, target="openai-responses", model="gpt-5.4").body
    assert [tool["name"] for tool in quick["tools"] if tool.get("defer_loading")] == ["never"]


ODD: list[Any] = [None, 5, "x", [], [5], {}, {"type": None}, True]
MEMBERS = ("filters", "user_location", "environment", "allowed_tools", "require_approval", "headers", "configs")
MORE = ("default_config", "server_url", "server_label", "mcp_server_name", "parameters", "description", "max_uses")


@pytest.mark.parametrize("key", [*MEMBERS, *MORE])
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        *(("anthropic", kind) for kind in ("web_search_20250305", "mcp_toolset", "computer_20250124")),
        *(("openai-responses", kind) for kind in ("web_search", "mcp", "shell", "tool_search", "computer")),
    ],
)
def test_odd_declarations_are_parsed_or_rejected(source: str, kind: str, key: str) -> None:
    servers = {"mcp_servers": [{"name": "m", "url": "https://x", "tool_configuration": 5}]} if "_" in kind else {}
    for value in ODD:
        tool = {"type": kind, "name": "n", "server_label": "l", "mcp_server_name": "m", key: value}
        for target in ("anthropic", "openai-responses", "gemini", "openai-chat"):
            try:
                out = segue.convert(body(source, tool, **servers), source=source, target=target)
            except segue.InputError:
                continue
            assert source == target or segue.check(out.body, target)


def test_found_tools_of_a_namespace_are_listed_and_declared() -> None:
    tool = {"type": "tool_search", "execution": "client", "parameters": {"type": "object", "properties": {}}}
    call = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"query": "tides"}}
    namespace = {"type": "namespace", "name": "mcp__harbour", "description": "Tides.", "tools": [FLAT]}
    found = {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": [namespace]}
    request = {**body("openai-responses", tool), "input": [{"role": "user", "content": "hi"}, call, found]}
    sent = segue.convert(request, source="openai-responses", target="anthropic").body
    assert f"[tools found: mcp__harbour::{FLAT['name']}]" in str(sent["messages"][-1])
    assert len(sent["tools"]) == 2

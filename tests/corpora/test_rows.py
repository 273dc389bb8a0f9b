"""What a row holds: branches, tools, models, images, errors, provenance, batches; and the rules of ADP and ATIF."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.json import encode_json
from segue.corpora import Row, Settings, convert, convert_session, load, read
from segue.errors import InputError
from segue.sessions.registry import CLIENTS
from tests.cli.client_logs import ClaudeCode, Codex
from tests.corpora.samples import PICTURE, encode, log_session, session

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}


def texts(row: Row) -> str:
    return str([message.blocks for message in row.request.messages])


def read_lines(folder: Path, *lines: Any, name: str = "x.jsonl") -> list[Row]:
    file = folder / name
    file.write_bytes(b"".join(encode_json(line) + b"\n" for line in lines))
    return list(read(file))


# ------------------------------------------------------------------------------------------------------------ branches


def test_a_rewound_branch_is_a_row_of_its_own(tmp_path):
    log = ClaudeCode()
    first = log.user("ASK")
    log.reply("m1", {"type": "text", "text": "LEFT"})
    log.reply("m2", {"type": "text", "text": "KEPT"}, below=first)
    main, left = read_lines(tmp_path, *log.lines)
    assert (main.flags, left.flags) == ((), ("rewound",))
    assert "KEPT" in texts(main)
    assert "LEFT" not in texts(main)
    assert "LEFT" in texts(left)
    assert "KEPT" not in texts(left)


def test_parallel_results_are_no_branches(tmp_path):
    (row,) = read_lines(tmp_path, *log_session().lines)
    assert row.flags == ()


@pytest.mark.parametrize("times", [1, 20])
def test_a_log_is_parsed_once_for_each_row_however_many_calls_run_in_parallel(tmp_path, monkeypatch, times):
    log = ClaudeCode()
    first = log.user("ASK")
    for number in range(times):
        calls = [f"toolu_{number}_{name}" for name in "ab"]
        made = [log.reply(f"m{number}", {"type": "tool_use", "id": call, "name": "f", "input": {}}) for call in calls]
        for call, line in zip(calls, made, strict=True):
            log.user([{"type": "tool_result", "tool_use_id": call, "content": call}], line)
    log.reply("left", {"type": "text", "text": "LEFT"}, below=first)
    log.reply("kept", {"type": "text", "text": "KEPT"}, below=log.lines[-2]["uuid"])
    parsed: list[int] = []
    parse_log = CLIENTS["claude"].reader.parse_log
    monkeypatch.setattr(CLIENTS["claude"].reader, "parse_log", lambda lines: parsed.append(1) or parse_log(lines))
    assert [row.flags for row in read_lines(tmp_path, *log.lines)] == [(), ("rewound",)]
    assert len(parsed) == 2


def test_what_a_client_compacted_is_a_row_of_its_own(tmp_path):
    log = ClaudeCode()
    log.user("BEFORE")
    log.reply("m1", {"type": "text", "text": "OLD"})
    log.entry("system", None, subtype="compact_boundary", compactMetadata={})
    log.user("SUMMARY", isCompactSummary=True)
    log.reply("m2", {"type": "text", "text": "NEW"})
    main, before = read_lines(tmp_path, *log.lines)
    assert before.flags == ("compacted",)
    assert "OLD" in texts(before)
    assert "OLD" not in texts(main)
    assert "NEW" in texts(main)


def test_a_subagent_in_the_same_file_is_a_row_of_its_own(tmp_path):
    log = ClaudeCode()
    log.user("ASK")
    log.reply("m1", {"type": "text", "text": "MAIN"})
    log.user("TASK", None, isSidechain=True)
    log.reply("m2", {"type": "text", "text": "SUB"}, isSidechain=True)
    main, agent = read_lines(tmp_path, *log.lines)
    assert (main.flags, agent.flags) == ((), ("sidechain",))
    assert "SUB" in texts(agent)
    assert "SUB" not in texts(main)


def test_items_that_codex_rolled_back_are_a_row_of_their_own(tmp_path):
    log = Codex()
    for text in ("ONE", "LEFT"):
        for role, kind in (("user", "input_text"), ("assistant", "output_text")):
            log.line("response_item", type="message", role=role, content=[{"type": kind, "text": f"{text} {role}"}])
    log.line("event_msg", type="thread_rolled_back", num_turns=1)
    log.line("response_item", type="message", role="user", content=[{"type": "input_text", "text": "KEPT"}])
    main, left = read_lines(tmp_path, *log.lines)
    assert left.flags == ("rewound",)
    assert "LEFT assistant" in texts(left)
    assert "LEFT" not in texts(main)


@pytest.mark.parametrize(
    ("output", "is_cut"),
    [("x\n... [300 lines truncated] ...\ny", True), ("Output truncated", True), ("truncated?", False)],
)
def test_a_row_with_a_result_that_was_cut_off_is_flagged(output, is_cut):
    log = ClaudeCode()
    log.user("ASK")
    log.reply("m1", {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}})
    log.result("toolu_1", output)
    (row,) = convert_session(encode(log), to="openai")
    assert row["segue"]["flags"] == ("truncated" if is_cut else "")


# --------------------------------------------------------------------------------------------------------------- facts


def test_known_tools_are_marked_and_others_named():
    log = log_session()
    log.reply("m4", {"type": "tool_use", "id": "toolu_4", "name": "mcp__x__y", "input": {}})
    (row,) = convert_session(encode(log), to="template")
    assert row["segue"]["tools"] == "client"
    assert row["segue"]["undeclared_tools"] == "mcp__x__y"
    assert [tool["function"]["name"] for tool in row["tools"]] == ["Read", "Bash", "Grep"]
    assert set(row["tools"][0]["function"]["parameters"]["properties"]) == {"file_path", "offset", "limit"}


def test_tools_of_the_file_are_kept():
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    body = {"messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    for form in ("openai", "template", "sharegpt", "atif", "adp"):
        (row,) = convert_session(encode_json(body), to=form)
        (back,) = convert_session(encode_json(row), to="template")
        assert back["tools"] == [tool], form


def test_replies_of_other_models_have_the_weight_0(tmp_path):
    log = ClaudeCode()
    log.user("ASK")
    log.reply("m1", {"type": "thinking", "thinking": "T", "signature": "x"}, {"type": "text", "text": "A"})
    log.user("MORE")
    log.reply("m2", {"type": "text", "text": "B"})
    log.lines[-1]["message"]["model"] = "other"
    file = tmp_path / "x.jsonl"
    file.write_bytes(encode(log))
    convert([str(file)], Settings("template", only_model="other"), tmp_path / "out")
    row = json.loads(next((tmp_path / "out/data").iterdir()).read_text())
    assert [message.get("weight") for message in row["messages"]] == [None, 0, None, None]
    assert row["segue"]["models"] == "claude-opus-4-6,other"
    (trajectory,) = convert_session(encode(log), to="atif")
    assert [step.get("model_name") for step in trajectory["steps"]] == [None, "claude-opus-4-6", None, "other"]


def test_images_of_results_are_kept_where_there_is_a_place():
    log = ClaudeCode()
    log.user("ASK")
    log.reply("m1", {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "x.png"}})
    log.user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": [IMAGE]}])
    for form in ("openai", "template", "sharegpt", "atif", "adp", "anthropic", "gemini", "openai-batch"):
        (row,) = convert_session(encode(log), to=form)
        assert json.dumps(row).count(PICTURE) == 1, form
        (back,) = convert_session(encode_json(row), to="template", source=form)
        assert json.dumps(back).count(PICTURE) == 1, form


def test_errors_of_results_survive():
    (row,) = convert_session(session(), to="atif")
    failed = [
        result["source_call_id"]
        for step in row["steps"]
        for result in step.get("observation", {}).get("results", ())
        if result.get("extra", {}).get("is_error")
    ]
    assert failed == ["toolu_2"]
    (back,) = convert_session(encode_json(row), to="anthropic")
    failed = [block["tool_use_id"] for block in _blocks(back) if block.get("is_error")]
    assert [block["name"] for block in _blocks(back) if block.get("id") in failed] == ["Bash"]


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [message["content"] for message in body["messages"]]
    return [block for content in contents if isinstance(content, list) for block in content]


def test_failed_results_are_counted_in_every_format(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(session())
    for form in ("template", "atif", "anthropic"):
        assert convert([str(file)], Settings(form), tmp_path / form).errors == 1


def test_the_exact_text_of_arguments_is_kept():
    for text in ('{"b": 1.0, "a": "\\u00e9"}', '{"a": 1, "b', "{}", '{"x":1e400}'):
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
        for form in ("openai", "sts"):
            lines = convert_session(encode_json({"messages": messages}), to=form, keep_secrets=True)
            found = json.loads(json.dumps(lines), strict=False)
            written = [
                each["function"]["arguments"]
                for line in found
                for message in line.get("messages", [line.get("message", {})])
                for each in message.get("tool_calls", message.get("toolCalls", ()))
            ]
            assert written == [text], form


def test_secrets_are_removed_and_counted(tmp_path):
    secret = "sk-ant-" + "a1" * 20
    row = {"messages": [{"role": "user", "content": f"my key is {secret}"}, {"role": "assistant", "content": "ok"}]}
    file = tmp_path / "x.jsonl"
    file.write_bytes(encode_json(row))
    counts = convert([str(file)], Settings("openai"), tmp_path / "out")
    assert counts.find("secret") == {"Anthropic key": 1}
    assert secret not in next((tmp_path / "out/data").iterdir()).read_text()
    kept = convert([str(file)], Settings("openai", keep_secrets=True), tmp_path / "kept")
    assert kept.find("secret") == {}
    assert secret in next((tmp_path / "kept/data").iterdir()).read_text()


def test_a_row_says_where_it_is_from(tmp_path):
    row = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}
    first, second = read_lines(tmp_path, row, row)
    assert first.provenance.file == str(tmp_path / "x.jsonl")
    assert (first.provenance.line, second.provenance.line) == (1, 2)
    assert second.provenance.offset == len(encode_json(row)) + 1
    (own,) = read_lines(tmp_path, *log_session().lines)
    assert (own.provenance.client_version, own.provenance.session, own.provenance.format) == ("2.1.63", "s", "claude")


# ------------------------------------------------------------------------------------------------------------- batches

OPENAI_REPLY = {
    "id": "c",
    "object": "chat.completion",
    "model": "gpt-x",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "REPLY {}"}}],
}
ANTHROPIC_REPLY = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "REPLY {}"}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
GEMINI_REPLY = {"candidates": [{"content": {"role": "model", "parts": [{"text": "REPLY {}"}]}, "finishReason": "STOP"}]}
QUESTION = {"role": "user", "content": "ASK {}"}


def _numbered(value: Any, number: int) -> Any:
    return json.loads(json.dumps(value).replace(" {}", f" {number}"))


BATCHES: dict[str, tuple[Any, Any, Any]] = {
    "openai-batch": (
        {"custom_id": "id {}", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [QUESTION]}},
        {"id": "b", "custom_id": "id {}", "response": {"status_code": 200, "body": OPENAI_REPLY}, "error": None},
        {"id": "b", "custom_id": "id {}", "response": None, "error": {"code": "expired", "message": "too late"}},
    ),
    "anthropic-batch": (
        {"custom_id": "id {}", "params": {"model": "claude-x", "max_tokens": 9, "messages": [QUESTION]}},
        {"custom_id": "id {}", "result": {"type": "succeeded", "message": ANTHROPIC_REPLY}},
        {"custom_id": "id {}", "result": {"type": "errored", "error": {"error": {"message": "too late"}}}},
    ),
    "gemini-batch": (
        {"key": "id {}", "request": {"contents": [{"role": "user", "parts": [{"text": "ASK {}"}]}]}},
        {"key": "id {}", "response": GEMINI_REPLY},
        {"key": "id {}", "error": {"code": 4, "message": "too late"}},
    ),
}


@pytest.mark.parametrize("form", BATCHES)
def test_requests_and_results_are_joined_by_id(tmp_path, form):
    request, result, failure = BATCHES[form]
    folder = tmp_path / "in"
    folder.mkdir()
    requests = [_numbered(request, number) for number in range(5)]
    results = [_numbered(result, number) for number in (3, 1, 0, 9)] + [_numbered(failure, 2)]
    (folder / "requests.jsonl").write_bytes(b"".join(encode_json(line) + b"\n" for line in requests))
    (folder / "results.jsonl").write_bytes(b"".join(encode_json(line) + b"\n" for line in [*results, results[0]]))
    counts = convert([str(folder)], Settings("openai"), tmp_path / "out")
    rows = [json.loads(line) for line in next((tmp_path / "out/data").iterdir()).read_text().splitlines()]
    assert [[message["content"] for message in row["messages"]] for row in rows] == [
        *(["ASK 0", "REPLY 0"], ["ASK 1", "REPLY 1"], ["ASK 2"], ["ASK 3", "REPLY 3"], ["ASK 4"])
    ]
    rejects = [json.loads(line)["reason"] for line in (tmp_path / "out/rejects.jsonl").read_text().splitlines()]
    assert rejects == ["a result for the unknown request id 9", "another result for the request id 3"]
    assert counts.find("left out") == {"results that failed: too late": 1}
    assert (counts.messages, counts.messages_in_rows, counts.messages_rejected) == (11, 8, 2)


@pytest.mark.parametrize("form", BATCHES)
def test_each_row_is_a_request_with_an_id_of_its_own(tmp_path, form):
    log = ClaudeCode()
    first = log.user("ASK")
    log.reply("m1", {"type": "text", "text": "LEFT"})
    log.reply("m2", {"type": "text", "text": "KEPT"}, below=first)
    for folder in ("a b", "c"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "session.v1.jsonl").write_bytes(encode(log))
    convert([str(tmp_path / "in")], Settings(form), tmp_path / "out")
    lines = [json.loads(line) for line in next((tmp_path / "out/data").iterdir()).read_text().splitlines()]
    ids = [line.get("custom_id", line.get("key")) for line in lines]
    assert len(set(ids)) == len(lines) == 4
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each) for each in ids)


# ------------------------------------------------------------------------------------------------- rules of the formats


def find_adp_faults(row: dict[str, Any]) -> list[str]:
    """Apply the rules of ADP's schema: every call and result has an id, and they pair one to one, in order."""
    fields = {
        "api_action": {"class_", "function", "kwargs", "description", "reasoning_content", "reward", "tool_call_id"},
        "message_action": {"class_", "content", "description", "reasoning_content", "reward"},
        "text_observation": {"class_", "content", "source", "name", "reward", "tool_call_id"},
        "image_observation": {"class_", "content", "source", "annotations", "reward", "tool_call_id"},
    }
    faults = [f"keys {item}" for item in row["content"] if not item.keys() <= fields[item["class_"]]]
    faults += [f"row {key}" for key in row.keys() - {"schema_version", "id", "content", "details"}]
    called: list[str] = []
    for item in row["content"]:
        if item["class_"] == "api_action":
            called.append(item["tool_call_id"])
            assert isinstance(item["kwargs"], dict)
        elif "tool_call_id" in item and (item["tool_call_id"] not in called or item["source"] != "environment"):
            faults.append(f"result {item}")
    results = [
        item["tool_call_id"] for item in row["content"] if "observation" in item["class_"] and "tool_call_id" in item
    ]
    return faults if sorted(results) == sorted(called) and len(set(called)) == len(called) else [*faults, "pairs"]


@pytest.mark.parametrize(
    "client", ["claude.jsonl", "codex.jsonl", "gemini.jsonl", "pi.jsonl", "qwen.jsonl", "opencode.json"]
)
def test_recorded_sessions_are_valid_trajectories(client):
    data = (Path(__file__).parents[1] / "data/sessions" / client).read_bytes()
    for row in convert_session(data, to="adp"):
        assert find_adp_faults(row) == []
    for row in convert_session(data, to="atif"):
        assert [step["step_id"] for step in row["steps"]] == [*range(1, len(row["steps"]) + 1)]


def test_rows_of_folders_are_loaded_in_another_format(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(session())
    (tmp_path / "bad.jsonl").write_text("x")
    found: list[str] = []
    (row,) = load([tmp_path], "template", rejected=lambda reject: found.append(reject.reason))
    assert row["segue"]["file"] == str(tmp_path / "x.jsonl")
    assert {key: row[key] for key in ("messages", "tools")} == {
        key: convert_session(session(), to="template")[0][key] for key in ("messages", "tools")
    }
    assert found == ["no JSON object was found"]
    with pytest.raises(InputError, match=r"bad\.jsonl"):
        list(load([tmp_path], "template"))


def test_content_that_can_not_be_read_raises_with_its_place():
    for data, message in ((b"", "no JSON"), (b"{}", "not a format"), (b'{"messages": [{"role": "user"}]}', "messages")):
        with pytest.raises(InputError, match=message):
            convert_session(data, to="openai")
    with pytest.raises(InputError, match="can only be read"):
        convert_session(session(), to="claude")

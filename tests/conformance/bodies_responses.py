"""Bodies for OpenAI Responses: each row breaks one rule."""

from __future__ import annotations

from tests.bodies import Body, responses
from tests.bodies.responses import call, reasoning, result, user
from tests.conformance.case import ENVELOPE, Case

USER = user()
SAYS: Body = {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}
SAID: Body = {**SAYS, "id": "msg_1"}
ENCRYPTED = "gAAAAABo"
THINKS = reasoning(encrypted_content=ENCRYPTED)
THINKS_2 = {**THINKS, "id": "rs_2"}
MEANT: Body = {"type": "item_reference", "id": "rs_1"}
WHO: Body = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "s"}
YES: Body = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
REMOTE: Body = {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "server_label": "s", "output": "r"}
SEARCH: Body = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
TOOL: Body = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": None}
SPACE: Body = {"type": "namespace", "name": "crm", "description": "d", "tools": [TOOL]}
SHOT: Body = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}
IMAGE: Body = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
TEXT: Body = {"type": "input_text", "text": "t"}
EXIT: Body = {"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
COMPACTED: Body = {"type": "compaction", "id": "cmp_1", "encrypted_content": ENCRYPTED}
TRIGGER: Body = {"type": "compaction_trigger"}
LONG = "c" * 65
LONG_NAME = "n" * 129
HUGE = "x" * 10_485_761


def custom(call_id: object = "call_1", **more: object) -> Body:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "f", "input": "raw", **more}


def custom_result(call_id: object = "call_1", output: object = "r") -> Body:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": output}


def shell(call_id: str = "call_1") -> Body:
    return {"type": "shell_call", "call_id": call_id, "action": {"commands": ["ls"]}}


def shell_result(*chunks: object, call_id: str = "call_1") -> Body:
    return {"type": "shell_call_output", "call_id": call_id, "output": list(chunks)}


def local_shell(call_id: str = "call_1") -> Body:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    return {"type": "local_shell_call", "id": "lsh_1", "call_id": call_id, "status": "completed", "action": action}


def local_result(**more: object) -> Body:
    return {"type": "local_shell_call_output", "output": "{}", **more}


def patch() -> Body:
    operation = {"type": "delete_file", "path": "a"}
    return {"type": "apply_patch_call", "call_id": "call_1", "status": "completed", "operation": operation}


def patched(**more: object) -> Body:
    return {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed", **more}


def computer() -> Body:
    checks: Body = {"pending_safety_checks": [], "status": "completed", "action": {"type": "screenshot"}}
    return {"type": "computer_call", "id": "cu_1", "call_id": "call_1", **checks}


def seen(output: object = SHOT) -> Body:
    return {"type": "computer_call_output", "call_id": "call_1", "output": output}


def search(execution: str | None, call_id: str = "call_1") -> Body:
    """A tool search without its status."""
    more: Body = {} if execution is None else {"execution": execution}
    return {"type": "tool_search_call", "call_id": call_id, "arguments": {}, **more}


def file(**source: object) -> Body:
    return {"role": "user", "content": [{"type": "input_file", **source}]}


def body(*items: object, **more: object) -> Body:
    """A body that begins with a question."""
    return responses.body(USER, *items, **more)


def message(*parts: object, role: str = "user") -> Body:
    return body({"role": role, "content": list(parts)})


def without(item: Body, *keys: str) -> Body:
    return {key: value for key, value in item.items() if key not in keys}


def declares(*tools: object) -> Body:
    return body(tools=list(tools))


OK = body(call(), result())
# Ids without reasoning are a risk of their own where responses are stored.
APART: Body = {"store": False}
PROGRAM: Body = {"type": "program", "id": "prg_1", "call_id": "call_1", "code": "x", "fingerprint": "fp"}

CASES = (
    Case(
        "OAI-RESP-01",
        "too long",
        body(call(LONG), result(LONG)),
        body(call(LONG[1:]), result(LONG[1:])),
        ("input[1].call_id", "input[2].call_id"),
    ),
    Case("OAI-RESP-01", "missing on the call", body(without(call(), "call_id")), OK, ("input[1].call_id",)),
    Case("OAI-RESP-01", "null on the call", body(call(None)), OK, ("input[1].call_id",)),
    Case("OAI-RESP-01", "null on the output", body(result(None)), OK, ("input[1].call_id",)),
    Case("OAI-RESP-01", "a number", body(call(1)), OK, ("input[1].call_id",)),
    Case("OAI-RESP-01", "empty", body(call("")), OK, ("input[1].call_id",)),
    Case("OAI-RESP-01", "nobody asked", body(without(result(), "call_id")), OK, ("input[1].call_id",), "risk"),
    Case(
        "OAI-RESP-01", "missing on other outputs", body(without(custom_result(), "call_id")), OK, ("input[1].call_id",)
    ),
    Case(
        "OAI-RESP-02",
        "the call's id",
        body(call(id="call_1"), result(), **APART),
        body(call(id="fc_1"), result(), **APART),
        ("input[1].id",),
    ),
    Case(
        "OAI-RESP-02",
        "a custom call",
        body(custom(id="fc_1"), custom_result(), **APART),
        body(custom(id="ctc_1"), custom_result(), **APART),
        ("input[1].id",),
    ),
    Case(
        "OAI-RESP-02", "two-part", body(call(id="fc_1|x"), result(), **APART), body(call(), result()), ("input[1].id",)
    ),
    Case("OAI-RESP-02", "too long", body(call(id=f"fc{LONG}"), result(), **APART), OK, ("input[1].id",)),
    Case("OAI-RESP-02", "empty", body(call(id=""), result(), **APART), OK, ("input[1].id",)),
    Case("OAI-RESP-02", "a dash", body(call(id="fc_1-2"), result(), **APART), OK, ("input[1].id",), "risk"),
    Case(
        "OAI-RESP-03", "of reasoning", body({**THINKS, "id": "thinking_0"}, SAID), body(THINKS, SAID), ("input[1].id",)
    ),
    Case(
        "OAI-RESP-03",
        "of a message",
        body({**SAYS, "id": "chatcmpl_1"}, **APART),
        body({**SAYS, "id": "msg_1"}, **APART),
        ("input[1].id",),
    ),
    Case(
        "OAI-RESP-03",
        "no id and nothing sealed",
        body({"type": "reasoning", "summary": []}, SAYS),
        body(THINKS, SAID),
        ("input[1].id",),
    ),
    Case(
        "OAI-RESP-03",
        "no id but sealed",
        body(without(THINKS, "id"), SAYS),
        body(THINKS, SAID),
        ("input[1].id",),
        "risk",
    ),
    Case(
        "OAI-RESP-03", "no summary", body(without(THINKS, "summary"), SAID), body(THINKS, SAID), ("input[1].summary",)
    ),
    Case(
        "OAI-RESP-03",
        "a status",
        body({**THINKS, "status": "completed"}, SAID),
        body(THINKS, SAID),
        ("input[1].status",),
        "risk",
    ),
    Case(
        "OAI-RESP-03",
        "of a hosted call",
        body({**SEARCH, "id": "item_1"}, **APART),
        body(SEARCH, **APART),
        ("input[1].id",),
        "risk",
    ),
    Case("OAI-RESP-03", "a number", body(call(), result(id=1)), OK, ("input[2].id",)),
    Case("OAI-RESP-04", "at the end", body(call()), OK, ("input[1]",)),
    Case(
        "OAI-RESP-04",
        "one of two",
        body(call("a"), call("b"), result("a"), USER),
        body(call("a"), call("b"), result("b"), result("a"), USER),
        ("input[2]",),
    ),
    Case(
        "OAI-RESP-04",
        "after an earlier response",
        body(call(), previous_response_id="resp_1"),
        body(call(), result(), previous_response_id="resp_1"),
        ("input[1]",),
    ),
    Case("OAI-RESP-04", "a shell", body(shell()), body(shell(), shell_result(EXIT)), ("input[1]",)),
    Case(
        "OAI-RESP-04",
        "a local shell",
        body(local_shell(), **APART),
        body(local_shell(), local_result(id="call_1"), **APART),
        ("input[1]",),
    ),
    Case("OAI-RESP-04", "a patch", body(patch()), body(patch(), patched()), ("input[1]",)),
    Case("OAI-RESP-04", "a computer", body(computer(), **APART), body(computer(), seen(), **APART), ("input[1]",)),
    Case(
        "OAI-RESP-04",
        "a search of the client",
        body(search("client"), **APART),
        body(search("server"), search("client", "call_2"), result("call_2"), **APART),
        ("input[1]",),
    ),
    Case("OAI-RESP-04", "a search of anybody", body(search(None), **APART), OK, ("input[1]",), "risk"),
    Case("OAI-RESP-04", "a program", body(PROGRAM, **APART), body(call(**{"async": True})), ("input[1]",), "risk"),
    Case("OAI-RESP-05", "no call", body(result()), body(result(), previous_response_id="resp_1"), ("input[1]",)),
    Case(
        "OAI-RESP-05",
        "other id",
        body(call(), result(), result("x")),
        body(call(), result(), result("x"), conversation="conv_1"),
        ("input[3]",),
    ),
    Case(
        "OAI-RESP-05",
        "of a shell",
        body(shell_result(EXIT)),
        body(shell_result(EXIT), conversation={"id": "conv_1"}),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-05",
        "a local shell",
        body(local_result(call_id="x")),
        body(local_shell(), local_result(call_id="call_1"), **APART),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-05",
        "of a reference",
        body({"type": "item_reference", "id": "msg_1"}, result()),
        body({"id": "fc_1"}, result()),
        ("input[2]",),
    ),
    Case("OAI-RESP-05", "before its call", body(result(), call()), OK, ("input[1]",)),
    Case(
        "OAI-RESP-06",
        "a message between",
        body(call(), SAYS, result()),
        body(SAYS, call(), result()),
        ("input[3]",),
        "risk",
        "qwen3-max",
    ),
    Case(
        "OAI-RESP-06",
        "a message between, to DeepSeek",
        body(call("call_1"), call("call_2"), SAYS, result("call_1"), result("call_2")),
        body(SAYS, call("call_1"), call("call_2"), result("call_1"), result("call_2")),
        ("input[4]", "input[5]"),
        model="deepseek-v4-flash",
    ),
    Case(
        "OAI-RESP-06",
        "reasoning between, to DeepSeek",
        body(call("call_1"), THINKS, call("call_2"), result("call_1"), result("call_2")),
        body(THINKS, call("call_1"), call("call_2"), result("call_1"), result("call_2")),
        ("input[4]",),
        model="deepseek-v4-flash",
    ),
    Case(
        "OAI-RESP-06",
        "in parallel",
        body(call("a"), call("b"), result("a"), USER, result("b")),
        body(call("a"), result("a"), call("b"), result("b"), USER),
        ("input[5]",),
        "risk",
    ),
    Case("OAI-RESP-07", "a message without its id", body(THINKS, SAYS), body(THINKS, SAID), ("input[1]",)),
    Case(
        "OAI-RESP-07",
        "a custom call without its id, in an earlier turn",
        body(THINKS, custom(), custom_result(), USER, store=True),
        body(THINKS, custom(id="ctc_1"), custom_result(), USER, store=True),
        ("input[1]",),
        model="gpt-5.4",
    ),
    Case(
        "OAI-RESP-07",
        "a shell call without its id",
        body(MEANT, shell(), shell_result(EXIT)),
        body(MEANT, {**shell(), "id": "sh_1"}, shell_result(EXIT)),
        ("input[1]",),
        model="gpt-5.4",
    ),
    Case(
        "OAI-RESP-07",
        "mixed ids, nothing stored",
        body(THINKS, SAYS, THINKS_2, call(), result(), store=False),
        body(THINKS, SAID, THINKS_2, call(id="fc_1"), result(), store=False),
        ("input[2]", "input[4]"),
        "risk",
    ),
    Case(
        "OAI-RESP-07",
        "mixed ids, another maker",
        body(THINKS, call(), result()),
        body(THINKS, call(id="fc_1"), result()),
        ("input[2]",),
        "risk",
        "grok-4",
    ),
    Case("OAI-RESP-07", "the user follows", body(THINKS, USER), body(THINKS, SAID, USER), ("input[1]",)),
    Case("OAI-RESP-07", "at the end", body(THINKS), body(THINKS, call(id="fc_1"), result()), ("input[1]",)),
    Case(
        "OAI-RESP-07",
        "an output follows",
        body(call(), THINKS, result()),
        body(THINKS, call(id="fc_1"), result()),
        ("input[2]",),
    ),
    Case(
        "OAI-RESP-07",
        "named by its id",
        body(MEANT, USER),
        body(MEANT, {"type": "item_reference", "id": "fc_1"}),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-07",
        "two in a row",
        body(THINKS, {**THINKS, "id": "rs_2"}, SAID),
        body(THINKS, SEARCH, SAID),
        ("input[1]",),
        "risk",
    ),
    Case(
        "OAI-RESP-08",
        "a call's id alone",
        body(call(id="fc_1"), result()),
        body(THINKS, call(id="fc_1"), result()),
        ("input[1].id",),
        "risk",
    ),
    Case(
        "OAI-RESP-08",
        "of an earlier turn",
        body(THINKS, SAID, USER, SEARCH),
        body(THINKS, SEARCH, SAID),
        ("input[4].id",),
        "risk",
        "gpt-5",
    ),
    Case(
        "OAI-RESP-09",
        "a message's id alone",
        body({**SAYS, "id": "msg_1"}),
        body(THINKS, {**SAYS, "id": "msg_1"}),
        ("input[1].id",),
        "risk",
    ),
    Case(
        "OAI-RESP-09",
        "the call comes first",
        body(THINKS, call(id="fc_1"), {**SAYS, "id": "msg_1"}, result()),
        body(THINKS, {**SAYS, "id": "msg_1"}, call(id="fc_1"), result()),
        ("input[3].id",),
        "risk",
        "gpt-5",
    ),
    Case(
        "OAI-RESP-10",
        "reasoning",
        body(without(THINKS, "encrypted_content"), SAID, **APART),
        body(THINKS, SAID, **APART),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-10",
        "nothing sealed",
        body({**THINKS, "encrypted_content": None}, SAID, **APART),
        body(without(THINKS, "encrypted_content"), SAID),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-10",
        "a reference",
        body({"type": "item_reference", "id": "msg_1"}, **APART),
        body({"type": "item_reference", "id": "msg_1"}),
        ("input[1]",),
    ),
    Case(
        "OAI-RESP-10",
        "perhaps stored earlier",
        body({"id": "msg_1"}, previous_response_id="resp_1", **APART),
        body({"id": "msg_1"}, previous_response_id="resp_1"),
        ("input[1]",),
        "risk",
    ),
    Case(
        "OAI-RESP-11",
        "another maker's",
        body({**THINKS, "encrypted_content": "EqQBCgIYAhIM"}, SAID),
        body(THINKS, SAID),
        ("input[1].encrypted_content",),
        "risk",
        "gpt-5",
    ),
    Case(
        "OAI-RESP-11",
        "OpenAI's, on Bedrock Mantle",
        body(THINKS, SAID),
        body({**THINKS, "encrypted_content": "rsn_5ZVr"}, SAID),
        ("input[1].encrypted_content",),
        "risk",
        "openai.gpt-5.6-luna",
    ),
    Case(
        "OAI-RESP-11",
        "an envelope",
        body({**THINKS, "encrypted_content": ENVELOPE}, SAID),
        body(THINKS, SAID),
        ("input[1].encrypted_content",),
    ),
    Case(
        "OAI-RESP-11",
        "an object",
        body({**THINKS, "encrypted_content": {}}, SAID),
        body(THINKS, SAID),
        ("input[1].encrypted_content",),
    ),
    Case(
        "OAI-RESP-13",
        "two messages",
        body({**SAYS, "id": "msg_1"}, {**SAYS, "id": "msg_1"}, **APART),
        body({**SAYS, "id": "msg_1"}, {**SAYS, "id": "msg_2"}, **APART),
        ("input[2].id",),
    ),
    Case(
        "OAI-RESP-13",
        "given and named",
        body(THINKS, SAID, USER, MEANT, {**SAYS, "id": "msg_2"}),
        body(THINKS, SAID, USER, SAYS),
        ("input[4].id",),
    ),
    Case("OAI-RESP-14", "role tool", body({"role": "tool", "content": "r"}), OK, ("input[1].role",)),
    Case("OAI-RESP-14", "no role", body({"type": "message", "content": "r"}), OK, ("input[1].role",)),
    Case("OAI-RESP-14", "tool_calls", body({**SAYS, "tool_calls": []}), body(SAYS), ("input[1].tool_calls",)),
    Case("OAI-RESP-14", "tool_call_id", body({**USER, "tool_call_id": "c"}), OK, ("input[1].tool_call_id",)),
    Case("OAI-RESP-14", "a strange key", body({**USER, "name": "n"}), OK, ("input[1].name",), "risk"),
    Case("OAI-RESP-14", "unknown type", body({"type": "tool_result", "content": "r"}), OK, ("input[1].type",), "risk"),
    Case("OAI-RESP-14", "type is a number", body({"type": 1, "content": "r"}), OK, ("input[1].type",)),
    Case("OAI-RESP-14", "neither type nor role", body({"content": "r"}), OK, ("input[1].type",)),
    Case("OAI-RESP-14", "no object", body("hi", None), OK, ("input[1]", "input[2]")),
    Case(
        "OAI-RESP-14", "reference to nothing", body({"type": "item_reference"}), body({"id": "msg_1"}), ("input[1].id",)
    ),
    Case(
        "OAI-RESP-14",
        "status",
        body({**SAYS, "status": "done"}),
        body({**SAYS, "status": "completed"}),
        ("input[1].status",),
        "risk",
    ),
    Case(
        "OAI-RESP-14",
        "tools from the user",
        body({"type": "additional_tools", "role": "user", "tools": [TOOL]}),
        body({"type": "additional_tools", "role": "developer", "tools": [TOOL]}),
        ("input[1].role",),
    ),
    Case(
        "OAI-RESP-14",
        "compaction without content",
        body({"type": "compaction", "id": "cmp_1"}),
        body(COMPACTED),
        ("input[1].encrypted_content",),
    ),
    Case(
        "OAI-RESP-15",
        "input_text of the assistant",
        message(TEXT, role="assistant"),
        body(SAYS),
        ("input[1].content[0].type",),
    ),
    Case(
        "OAI-RESP-15",
        "output_text of the user",
        message({"type": "output_text", "text": "a"}),
        message(TEXT, IMAGE),
        ("input[1].content[0].type",),
    ),
    Case(
        "OAI-RESP-15",
        "text as in chat",
        message({"type": "text", "text": "a"}),
        message(TEXT),
        ("input[1].content[0].type",),
    ),
    Case(
        "OAI-RESP-15",
        "audio",
        message({"type": "input_audio", "input_audio": {}}),
        message(TEXT),
        ("input[1].content[0].type",),
        "risk",
    ),
    Case(
        "OAI-RESP-15",
        "image as in chat",
        message({**IMAGE, "image_url": {"url": "u"}}),
        message(IMAGE),
        ("input[1].content[0].image_url",),
    ),
    Case(
        "OAI-RESP-15",
        "no source",
        message({"type": "input_file", "filename": "f"}),
        message({"type": "input_file", "file_id": "file_1"}),
        ("input[1].content[0]",),
    ),
    Case("OAI-RESP-15", "no text", message({"type": "input_text"}), message(TEXT), ("input[1].content[0].text",)),
    Case(
        "OAI-RESP-15",
        "no refusal",
        message({"type": "refusal"}, role="assistant"),
        message({"type": "refusal", "refusal": "no"}, role="assistant"),
        ("input[1].content[0].refusal",),
    ),
    Case("OAI-RESP-15", "a string among parts", message("t"), message(TEXT), ("input[1].content[0]",)),
    Case("OAI-RESP-15", "null", body({"role": "assistant", "content": None}), body(SAYS), ("input[1].content",)),
    Case(
        "OAI-RESP-15",
        "missing",
        body({"role": "developer"}),
        body({"role": "developer", "content": "s"}),
        ("input[1].content",),
    ),
    Case("OAI-RESP-16", "an object", body(call(), result(output={})), OK, ("input[2].output",)),
    Case("OAI-RESP-16", "missing", body(call(), without(result(), "output")), OK, ("input[2].output",)),
    Case(
        "OAI-RESP-16",
        "a video as a file",
        body(file(file_data="data:video/mp4;base64,AA=="), file(file_data="DATA:Image/PNG;base64,AA==")),
        body(file(file_data="data:text/plain;base64,AA=="), file(file_data="AA==")),
        ("input[1].content[0].file_data", "input[2].content[0].file_data"),
    ),
    Case(
        "OAI-RESP-16",
        "audio as a file of a custom tool",
        body(custom(), custom_result(output=[{"type": "input_file", "file_data": "data:audio/wav;base64,AA=="}])),
        body(custom(), custom_result(output=[{"type": "input_file", "file_data": "data:application/pdf;base64,AA=="}])),
        ("input[2].output[0].file_data",),
    ),
    Case(
        "OAI-RESP-16",
        "a url of audio",
        body(file(file_url="https://a.example/b.WAV?x=1.pdf"), file(file_url="https://a.example/c.mp4")),
        body(file(file_url="https://a.example/b.pdf?x=1.wav"), file(file_url="https://a.example/mp4")),
        ("input[1].content[0].file_url", "input[2].content[0].file_url"),
        "risk",
    ),
    Case(
        "OAI-RESP-16",
        "null",
        body(custom(), custom_result(output=None)),
        body(custom(), custom_result()),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "output_text",
        body(call(), result(output=[{"type": "output_text", "text": "r"}])),
        body(call(), result(output=[TEXT, IMAGE])),
        ("input[2].output[0].type",),
    ),
    Case(
        "OAI-RESP-16",
        "too long",
        body(call(), result(output=HUGE)),
        body(call(), result(output=HUGE[1:])),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "status",
        body(call(), result(status="failed")),
        body(call(), result(status="completed")),
        ("input[2].status",),
        "risk",
    ),
    Case(
        "OAI-RESP-16",
        "status of a patch",
        body(patch(), patched(status="incomplete")),
        body(patch(), patched(status="failed", output="no")),
        ("input[2].status",),
        "risk",
    ),
    Case(
        "OAI-RESP-16",
        "no status of a patch",
        body(patch(), without(patched(), "status")),
        body(patch(), patched()),
        ("input[2].status",),
    ),
    Case(
        "OAI-RESP-16",
        "list of a patch",
        body(patch(), patched(output=[])),
        body(patch(), patched()),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "shell as text",
        body(shell(), {**shell_result(), "output": "r"}),
        body(shell(), shell_result(EXIT)),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "shell without outcome",
        body(shell(), shell_result(without(EXIT, "outcome"), EXIT)),
        body(shell(), shell_result({**EXIT, "outcome": {"type": "timeout"}})),
        ("input[2].output[0].outcome",),
    ),
    Case(
        "OAI-RESP-16",
        "shell without exit code",
        body(shell(), shell_result({**EXIT, "outcome": {"type": "exit"}})),
        body(shell(), shell_result()),
        ("input[2].output[0].outcome.exit_code",),
    ),
    Case(
        "OAI-RESP-16",
        "shell chunks",
        body(shell(), shell_result("r", without(EXIT, "stderr"))),
        body(shell(), shell_result(EXIT, EXIT)),
        ("input[2].output[0]", "input[2].output[1].stderr"),
    ),
    Case(
        "OAI-RESP-16",
        "local shell",
        body(local_shell(), local_result(id="call_1", output={}), **APART),
        body(local_shell(), local_result(id="lsh_1"), **APART),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "screenshot as text",
        body(computer(), seen("r"), **APART),
        body(computer(), seen(), **APART),
        ("input[2].output",),
    ),
    Case(
        "OAI-RESP-16",
        "screenshot of another type",
        body(computer(), seen({"type": "text"}), **APART),
        body(computer(), seen(), **APART),
        ("input[2].output.type",),
    ),
    Case(
        "OAI-RESP-16",
        "screenshot as an image",
        body(computer(), seen(IMAGE), **APART),
        body(computer(), seen(), **APART),
        ("input[2].output.type",),
        "risk",
    ),
    Case("OAI-RESP-16", "an error flag", body(call(), result(is_error=True)), OK, ("input[2].is_error",), "risk"),
    Case(
        "OAI-RESP-17",
        "function for a search of the server",
        body(search("server"), result(), **APART),
        body(search("client"), result(), **APART),
        ("input[2].type",),
    ),
    Case("OAI-RESP-17", "custom call alone", body(custom()), body(custom(), custom_result()), ("input[1]",)),
    Case(
        "OAI-RESP-17",
        "function for custom",
        body(custom(), result()),
        body(custom(**{"async": True})),
        ("input[2].type",),
    ),
    Case("OAI-RESP-17", "custom for function", body(call(), custom_result()), OK, ("input[2].type",)),
    Case(
        "OAI-RESP-17", "function for shell", body(shell(), result()), body(shell(), shell_result()), ("input[2].type",)
    ),
    Case("OAI-RESP-17", "arguments as an object", body(call(arguments={}), result()), OK, ("input[1].arguments",)),
    Case("OAI-RESP-17", "no arguments", body(without(call(), "arguments"), result()), OK, ("input[1].arguments",)),
    Case("OAI-RESP-17", "no name", body(without(call(), "name"), result()), OK, ("input[1].name",)),
    Case(
        "OAI-RESP-17",
        "input as an object",
        body(custom(input={}), custom_result()),
        body(custom(input=""), custom_result()),
        ("input[1].input",),
    ),
    Case(
        "OAI-RESP-17",
        "no action",
        body(without(shell(), "action"), shell_result()),
        body(shell(), shell_result()),
        ("input[1].action",),
    ),
    Case(
        "OAI-RESP-17",
        "status",
        body(call(status="done"), result()),
        body(call(status="completed"), result()),
        ("input[1].status",),
        "risk",
    ),
    Case(
        "OAI-RESP-17",
        "a strange key",
        body(call(parsed_arguments={}), result()),
        OK,
        ("input[1].parsed_arguments",),
        "risk",
    ),
    Case(
        "OAI-RESP-17",
        "no id",
        body(without(local_shell(), "id"), local_result(call_id="call_1")),
        body(local_shell(), local_result(call_id="call_1"), **APART),
        ("input[1].id",),
        "risk",
    ),
    Case(
        "OAI-RESP-18",
        "in a namespace only",
        body(call(), result(), tools=[SPACE]),
        body(call(namespace="crm"), result(), tools=[SPACE]),
        ("input[1].namespace",),
    ),
    Case(
        "OAI-RESP-18",
        "found by a search",
        body({"type": "tool_search_output", "tools": [SPACE]}, call(), result()),
        body({"type": "tool_search_output", "tools": [SPACE]}, call(), result(), tools=[TOOL]),
        ("input[2].namespace",),
    ),
    Case(
        "OAI-RESP-18",
        "deferred",
        body(call(), result(), tools=[{**TOOL, "defer_loading": True}]),
        body(call(), result(), tools=[TOOL, SPACE]),
        ("input[1].namespace",),
        "risk",
    ),
    Case(
        "OAI-RESP-19",
        "namespace",
        body(call(namespace="a.b"), result()),
        body(call(namespace="a-b"), result()),
        ("input[1].namespace",),
    ),
    Case(
        "OAI-RESP-19",
        "long namespace",
        body(call(), result(namespace=LONG)),
        body(call(), result(namespace="a")),
        ("input[2].namespace",),
    ),
    Case(
        "OAI-RESP-19",
        "namespace is a number",
        body(custom(namespace=1), custom_result()),
        body(custom(namespace="a"), custom_result()),
        ("input[1].namespace",),
    ),
    Case(
        "OAI-RESP-19",
        "long name of an output",
        body(call(), result(name=LONG_NAME)),
        body(call(), result(name=LONG_NAME[1:])),
        ("input[2].name",),
    ),
    Case("OAI-RESP-19", "a dot", body(call(name="a.b"), result()), OK, ("input[1].name",)),
    Case(
        "OAI-RESP-19",
        "a dot on a reasoning model",
        body(call(name="a.b"), result()),
        OK,
        ("input[1].name",),
        "risk",
        "gpt-5",
    ),
    Case("OAI-RESP-19", "a space", body(call(name="a b"), result()), OK, ("input[1].name",), model="gpt-5"),
    Case(
        "OAI-RESP-19",
        "a custom tool",
        body(custom(name="a b"), custom_result()),
        body(custom(), custom_result()),
        ("input[1].name",),
        "risk",
    ),
    Case("OAI-RESP-19", "empty", body(call(name=""), result()), OK, ("input[1].name",)),
    Case(
        "OAI-RESP-19",
        "over 64",
        body(call(name=LONG), result()),
        body(call(name=LONG[1:]), result()),
        ("input[1].name",),
        "risk",
    ),
    Case("OAI-RESP-19", "over 128", declares({**TOOL, "name": LONG_NAME}), declares(TOOL), ("tools[0].name",)),
    Case(
        "OAI-RESP-19",
        "a tool as in chat",
        declares({"type": "function", "function": {"name": "f"}}),
        declares(TOOL),
        ("tools[0].name",),
    ),
    Case("OAI-RESP-19", "no type", declares({"name": "f"}, "f"), declares(TOOL), ("tools[0]", "tools[1]")),
    Case(
        "OAI-RESP-19",
        "unknown type",
        declares({"type": "x"}),
        declares({"type": "web_search"}),
        ("tools[0].type",),
        "risk",
    ),
    Case(
        "OAI-RESP-19",
        "parameters",
        declares({**TOOL, "parameters": "{}"}),
        declares({**TOOL, "parameters": None}),
        ("tools[0].parameters",),
    ),
    Case(
        "OAI-RESP-19",
        "inside a namespace",
        declares({**SPACE, "tools": [{**TOOL, "name": "a b"}]}),
        declares(SPACE),
        ("tools[0].tools[0].name",),
    ),
    Case(
        "OAI-RESP-19", "a namespace of nothing", declares(without(SPACE, "tools")), declares(SPACE), ("tools[0].tools",)
    ),
    Case(
        "OAI-RESP-19",
        "a server without label",
        declares({"type": "mcp"}),
        declares({"type": "mcp", "server_label": "s", "server_url": "u"}),
        ("tools[0].server_label",),
    ),
    Case(
        "OAI-RESP-19",
        "additional tools",
        body({"type": "additional_tools", "role": "developer", "tools": [without(TOOL, "name")]}),
        body({"type": "additional_tools", "role": "developer", "tools": [TOOL]}),
        ("input[1].tools[0].name",),
    ),
    Case("OAI-RESP-19", "no list", body(tools={}), body(tools=[]), ("tools",)),
    Case("OAI-RESP-19", "null", body(tools=None), body(), ("tools",), "risk"),
    Case(
        "OAI-RESP-19",
        "choice as in chat",
        body(tool_choice={"type": "function", "function": {"name": "f"}}),
        body(tool_choice={"type": "function", "name": "f"}),
        ("tool_choice.name",),
    ),
    Case(
        "OAI-RESP-20",
        "a call_id",
        body({**SEARCH, "call_id": "call_1"}, **APART),
        body(SEARCH, **APART),
        ("input[1].call_id",),
        "risk",
    ),
    Case(
        "OAI-RESP-20",
        "an image that nobody stores",
        body({"type": "image_generation_call", "id": "ig_1"}, store=False),
        body({"type": "image_generation_call", "id": "ig_1", "result": "AA==", "status": "completed"}, store=False),
        ("input[1].result", "input[1].status"),
        "risk",
    ),
    Case("OAI-RESP-20", "no id", body(without(SEARCH, "id")), body(SEARCH, **APART), ("input[1].id",), "risk"),
    Case(
        "OAI-RESP-20",
        "no action",
        body(without(SEARCH, "action"), **APART),
        body(SEARCH, **APART),
        ("input[1].action",),
    ),
    Case(
        "OAI-RESP-20",
        "arguments as an object",
        body({**REMOTE, "arguments": {}}, **APART),
        body(REMOTE, **APART),
        ("input[1].arguments",),
    ),
    Case(
        "OAI-RESP-20",
        "local shell without its call",
        body(local_result()),
        body(local_shell(), local_result(call_id="call_1"), **APART),
        ("input[1].call_id",),
    ),
    Case(
        "OAI-RESP-21",
        "answered by the client",
        body(REMOTE, result("mcp_1"), **APART),
        body(REMOTE, **APART),
        ("input[2]",),
    ),
    Case("OAI-RESP-21", "not asked", body(YES), body(WHO, YES, **APART), ("input[1].approval_request_id",)),
    Case(
        "OAI-RESP-21",
        "asked later",
        body(YES, WHO, **APART),
        body(YES, previous_response_id="resp_1"),
        ("input[1].approval_request_id",),
    ),
    Case(
        "OAI-RESP-21",
        "neither yes nor no",
        body(WHO, {**YES, "approve": "yes"}, **APART),
        body(WHO, {**YES, "approve": False}, **APART),
        ("input[2].approve",),
    ),
    Case("OAI-RESP-21", "request without id", body(without(WHO, "id")), body(WHO, **APART), ("input[1].id",)),
    Case("OAI-RESP-24", "nothing", {"model": "gpt-5"}, {"input": "q"}, ("input",)),
    Case("OAI-RESP-24", "null", {"input": None}, {"prompt": {"id": "pmpt_1"}}, ("input",)),
    Case("OAI-RESP-24", "an object", {"input": {}}, {"previous_response_id": "resp_1"}, ("input",)),
    Case(
        "OAI-RESP-24",
        "two states",
        {"input": "q", "previous_response_id": "resp_1", "conversation": "conv_1"},
        {"conversation": "conv_1"},
        ("conversation",),
    ),
    Case(
        "OAI-RESP-24",
        "instructions in parts",
        {"input": "q", "instructions": [TEXT]},
        {"input": [{"role": "system", "content": "s"}], "instructions": "s"},
        ("instructions",),
    ),
    Case("OAI-RESP-24", "messages", {"input": "q", "messages": [USER]}, {"input": [USER]}, ("messages",)),
    Case("OAI-RESP-24", "system", {"input": "q", "system": "s"}, {"input": "q", "instructions": None}, ("system",)),
    Case("OAI-RESP-25", "two calls", body(call(), call(), result()), OK, ("input[2].call_id",)),
    Case(
        "OAI-RESP-25",
        "two turns",
        body(call(), result(), call(), result()),
        body(call(), result(), call("b"), result("b")),
        ("input[3].call_id",),
    ),
    Case("OAI-RESP-25", "two outputs", body(call(), result(), result()), OK, ("input[3].call_id",)),
    Case("OAI-RESP-27", "in the middle", body(TRIGGER, USER), body(SAYS, TRIGGER), ("input[1]",)),
    Case("OAI-RESP-27", "two", body(TRIGGER, TRIGGER), body(COMPACTED, USER, TRIGGER), ("input[1]",)),
    Case(
        "OAI-RESP-28",
        "no id",
        body({"type": "compaction", "encrypted_content": ENCRYPTED}),
        body(COMPACTED),
        ("input[1].id",),
        "risk",
    ),
)

"""The table of tools: every row in both directions, and results in the form of each client."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Message, Text, ToolCall, ToolResponse, text_of
from segue.emulator.model.file_tools import _SCRIPT
from segue.sessions.codex_programs import parse_program
from segue.sessions.patches import FileEdit, FileWrite, parse_patch, render_edit, render_write
from segue.sessions.registry import CLIENTS
from segue.sessions.tools import MCP_NAMES, TOOLS, Operation
from segue.sessions.translation import Translator

TWO_FILES = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch\n"
# One call of each operation that a client has a tool for, in that client's own terms.
SAMPLES: dict[str, dict[Operation, tuple[str, Any]]] = {
    "claude": {
        "shell": ("Bash", {"command": "ls -la", "timeout": 5000, "description": "List"}),
        "read": ("Read", {"file_path": "/w/a.py", "offset": 3, "limit": 10}),
        "picture": ("Read", {"file_path": "/w/a.png"}),
        "list": ("LS", {"path": "/w"}),
        "find": ("Glob", {"pattern": "*.py", "path": "/w"}),
        "search": ("Grep", {"pattern": "x y", "path": "/w", "glob": "*.py"}),
        "write": ("Write", {"file_path": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("Edit", {"file_path": "/w/a.py", "old_string": "a\nb", "new_string": "c"}),
        "plan": ("TodoWrite", {"todos": [{"content": "Read", "status": "completed"}]}),
        "fetch": ("WebFetch", {"url": "https://example.org", "prompt": "Sum up"}),
        "web": ("WebSearch", {"query": "segue"}),
        "agent": ("Agent", {"description": "Look", "prompt": "Find it", "subagent_type": "general-purpose"}),
        "skill": ("Skill", {"skill": "review", "args": "all"}),
        "notebook": ("NotebookEdit", {"notebook_path": "/w/a.ipynb", "cell_id": "c1", "new_source": "1"}),
    },
    "codex": {
        "shell": ("exec_command", {"cmd": "ls -la", "timeout_ms": 5000, "justification": "List"}),
        "picture": ("view_image", {"path": "/w/a.png"}),
        "patch": ("apply_patch", "*** Begin Patch\n*** Add File: /w/n.txt\n+one\n+two\n*** End Patch\n"),
        "plan": ("update_plan", {"plan": [{"step": "Read", "status": "completed"}]}),
    },
    "gemini": {
        "shell": ("run_shell_command", {"command": "ls -la", "description": "List"}),
        "read": ("read_file", {"file_path": "/w/a.py", "start_line": 3, "end_line": 12}),
        "picture": ("read_file", {"file_path": "/w/a.png"}),
        "list": ("list_directory", {"dir_path": "/w"}),
        "find": ("glob", {"pattern": "*.py", "dir_path": "/w"}),
        "search": ("grep_search", {"pattern": "x y", "dir_path": "/w", "include_pattern": "*.py"}),
        "write": ("write_file", {"file_path": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("replace", {"file_path": "/w/a.py", "old_string": "a\nb", "new_string": "c"}),
        "plan": ("write_todos", {"todos": [{"description": "Read", "status": "completed"}]}),
        "fetch": ("web_fetch", {"prompt": "Sum up https://example.org"}),
        "web": ("google_web_search", {"query": "segue"}),
        "agent": ("invoke_agent", {"agent_name": "generalist", "prompt": "Find it"}),
        "skill": ("activate_skill", {"name": "review"}),
    },
    "qwen": {
        "shell": ("run_shell_command", {"command": "ls -la", "timeout": 5000, "description": "List"}),
        "read": ("read_file", {"file_path": "/w/a.py", "offset": 2, "limit": 10}),
        "picture": ("read_file", {"file_path": "/w/a.png"}),
        "list": ("list_directory", {"path": "/w"}),
        "find": ("glob", {"pattern": "*.py", "path": "/w"}),
        "search": ("grep_search", {"pattern": "x y", "path": "/w", "glob": "*.py"}),
        "write": ("write_file", {"file_path": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("edit", {"file_path": "/w/a.py", "old_string": "a\nb", "new_string": "c"}),
        "plan": ("todo_write", {"todos": [{"content": "Read", "status": "completed"}]}),
        "fetch": ("web_fetch", {"url": "https://example.org", "prompt": "Sum up"}),
        "web": ("web_search", {"query": "segue"}),
        "agent": ("agent", {"description": "Look", "prompt": "Find it", "subagent_type": "general-purpose"}),
        "skill": ("skill", {"skill": "review", "args": "all"}),
        "notebook": ("notebook_edit", {"notebook_path": "/w/a.ipynb", "cell_id": "c1", "new_source": "1"}),
    },
    "opencode": {
        "shell": ("bash", {"command": "ls -la", "timeout": 5000, "description": "List"}),
        "read": ("read", {"filePath": "/w/a.py", "offset": 3, "limit": 10}),
        "picture": ("read", {"filePath": "/w/a.png"}),
        "list": ("read", {"filePath": "/w"}),
        "find": ("glob", {"pattern": "*.py", "path": "/w"}),
        "search": ("grep", {"pattern": "x y", "path": "/w", "include": "*.py"}),
        "write": ("write", {"filePath": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("edit", {"filePath": "/w/a.py", "oldString": "a\nb", "newString": "c"}),
        "plan": ("todowrite", {"todos": [{"content": "Read", "status": "completed"}]}),
        "patch": ("apply_patch", {"patchText": TWO_FILES}),
        "fetch": ("webfetch", {"url": "https://example.org"}),
        "web": ("websearch", {"query": "segue"}),
        "agent": ("task", {"description": "Look", "prompt": "Find it", "subagent_type": "general"}),
        "skill": ("skill", {"name": "review"}),
    },
    "pi": {
        "shell": ("bash", {"command": "ls -la", "timeout": 5}),
        "read": ("read", {"path": "/w/a.py", "offset": 3, "limit": 10}),
        "picture": ("read", {"path": "/w/a.png"}),
        "list": ("ls", {"path": "/w"}),
        "find": ("find", {"pattern": "*.py", "path": "/w"}),
        "search": ("grep", {"pattern": "x y", "path": "/w", "glob": "*.py"}),
        "write": ("write", {"path": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("edit", {"path": "/w/a.py", "edits": [{"oldText": "a\nb", "newText": "c"}]}),
    },
    "segue": {
        "shell": ("shell", {"command": "ls -la", "timeout": 5}),
        "read": ("read_file", {"path": "/w/a.py", "start_line": 3, "lines": 10}),
        "list": ("list_dir", {"path": "/w"}),
        "find": ("glob", {"pattern": "*.py", "path": "/w"}),
        "search": ("grep", {"pattern": "x y", "path": "/w", "glob": "*.py"}),
        "write": ("write_file", {"path": "/w/n.txt", "content": "one\ntwo\n"}),
        "edit": ("edit_file", {"path": "/w/a.py", "old_string": "a\nb", "new_string": "c"}),
        "plan": ("todo", {"items": [{"text": "Read", "state": "done"}]}),
        "fetch": ("fetch_url", {"url": "https://example.org"}),
    },
}
PAIRS = [(source, target) for source in SAMPLES for target in SAMPLES if source != target]
# Operations of which both have a tool that is always there, so that the way back is exact. opencode reads folders as it
# reads files, and Codex's patch of one file becomes a write.
_DECLARED = {client: {row.operation for row in rows if row.command is None} for client, rows in TOOLS.items()}
ROUND_TRIPS = [
    (source, target, operation)
    for source, target in PAIRS
    for operation in SAMPLES[source]
    if operation in _DECLARED[source]
    and (
        (operation in _DECLARED[target] and (target, operation) != ("opencode", "list"))
        or (source == "codex" and operation == "patch" and "write" in _DECLARED[target])
    )
]


def translate(source: str, target: str, name: str, arguments: Any, servers: tuple[str, ...] = ()) -> tuple[str, Any]:
    call = ToolCall(name, arguments, "c1", kind="custom" if isinstance(arguments, str) else "function")
    (block,) = Translator(source, target, "/w", servers).translate(Message("ai", (call,))).message.blocks
    assert isinstance(block, ToolCall)
    assert (block.kind == "custom") == isinstance(block.arguments, str)
    return block.name, block.arguments


def test_every_row_has_a_sample():
    for client, rows in TOOLS.items():
        assert {row.operation for row in rows if row.names} == set(SAMPLES[client])
    assert set(TOOLS) == set(SAMPLES) == set(CLIENTS)


@pytest.mark.parametrize(("source", "target", "operation"), ROUND_TRIPS)
def test_a_call_becomes_the_others_and_back(source: str, target: str, operation: Operation):
    there = translate(source, target, *SAMPLES[source][operation])
    names = [row.names[0] for row in TOOLS[target] if row.names]
    assert there[0] in names
    assert translate(target, source, *there) == SAMPLES[source][operation]


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        ("read", "cat -n -- /w/a.py | sed -n '3,12p'"),
        ("list", "ls -la -- /w"),
        ("find", "rg --files --glob='*.py' -- /w"),
        ("search", "rg -n --glob='*.py' --regexp='x y' -- /w"),
    ],
)
def test_what_codex_has_no_tool_for_is_a_command(operation: Operation, command: str):
    assert translate("claude", "codex", *SAMPLES["claude"][operation]) == ("exec_command", {"cmd": command})
    assert translate("segue", "codex", *SAMPLES["segue"][operation]) == ("exec_command", {"cmd": command})


@pytest.mark.parametrize(
    ("target", "tool", "operation", "command"),
    [
        ("qwen", "run_shell_command", "list", "ls -la -- /w"),
        ("pi", "bash", "list", "ls -la -- /w"),
        ("pi", "bash", "find", "rg --files --glob='*.py' -- /w"),
        ("pi", "bash", "search", "rg -n --glob='*.py' --regexp='x y' -- /w"),
    ],
)
def test_tools_that_a_client_does_not_declare_by_default_are_read_and_written_as_commands(
    target: str, tool: str, operation: Operation, command: str
):
    assert translate("claude", target, *SAMPLES["claude"][operation]) == (tool, {"command": command})
    assert translate(target, "claude", *SAMPLES[target][operation]) == SAMPLES["claude"][operation]


@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        ("Grep", {"pattern": "--pre=x", "path": "-a", "glob": "-b"}, "rg -n --glob=-b --regexp=--pre=x -- -a"),
        ("Glob", {"pattern": "-*", "path": "-a"}, "rg --files --glob='-*' -- -a"),
        ("Glob", {"pattern": "*.py"}, "rg --files --glob='*.py'"),
        ("LS", {"path": "-R"}, "ls -la -- -R"),
        ("LS", {}, "ls -la"),
        ("Read", {"file_path": "-a"}, "cat -n -- -a"),
    ],
)
def test_patterns_and_paths_of_commands_are_no_options(tool: str, arguments: Any, command: str):
    assert translate("claude", "codex", tool, arguments) == ("exec_command", {"cmd": command})


def test_a_search_without_a_pattern_is_no_command():
    assert translate("claude", "codex", "Grep", {"path": "/w"}) == ("Grep", {"path": "/w"})


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("https://a.org", {"url": "https://a.org"}),
        ("Sum up https://a.org", {"url": "https://a.org", "prompt": "Sum up"}),
        ("Sum up https://a.org now", {"url": "https://a.org", "prompt": "Sum up https://a.org now"}),
        ("Sum up", {"prompt": "Sum up"}),
        (" Sum up\n https://a.org", {"url": "https://a.org", "prompt": " Sum up\n"}),
    ],
)
def test_gemini_has_the_url_in_the_prompt(prompt: str, expected: dict[str, str]):
    assert translate("gemini", "claude", "web_fetch", {"prompt": prompt}) == ("WebFetch", expected)
    assert translate("claude", "gemini", "WebFetch", expected) == ("web_fetch", {"prompt": prompt})


def test_calls_of_undeclared_tools_in_qwen_are_calls_of_these_tools():
    arguments = {"name": "mcp__files__read", "arguments": {"path": "a"}}
    assert translate("qwen", "gemini", "tool_call", arguments) == ("mcp_files_read", {"path": "a"})
    fetch = {"name": "web_fetch", "arguments": {"url": "https://a.org", "prompt": "Sum up"}}
    assert translate("qwen", "claude", "tool_call", fetch) == ("WebFetch", fetch["arguments"])
    assert translate("qwen", "claude", "tool_call", {"name": "x"}) == ("tool_call", {"name": "x"})


@pytest.mark.parametrize(("target", "kept"), [("qwen", ()), ("pi", ("mcp__files__read",))])
def test_a_tool_of_an_mcp_server_is_one_of_the_target_too_if_that_has_servers(target: str, kept: tuple[str, ...]):
    message = Message("ai", (ToolCall("mcp__files__read", {}, "c1"),))
    assert Translator("claude", target, "/w").translate(message).kept == kept


def test_results_have_the_name_of_their_translated_call():
    translator = Translator("gemini", "qwen", "/w")
    edit = SAMPLES["gemini"]["edit"]
    translator.translate(Message("ai", (ToolCall(*edit, "c1"), ToolCall("save_memory", {}, "c2"))))
    results = tuple(ToolResponse(id, name, (Text("Done."),)) for id, name in (("c1", "replace"), ("c2", "x")))
    blocks = translator.translate(Message("tool", results)).message.blocks
    assert [block.name for block in blocks if isinstance(block, ToolResponse)] == ["edit", "x"]


def test_no_argument_is_dropped():
    grep = {"pattern": "x", "output_mode": "content", "-n": True, "-i": True, "head_limit": 5}
    assert translate("claude", "codex", "Grep", grep) == (
        "exec_command",
        {"cmd": "rg -n -i --regexp=x", "output_mode": "content", "-n": True, "head_limit": 5},
    )
    command = {"cmd": "ls", "workdir": "/w", "yield_time_ms": 5}
    assert translate("codex", "claude", "exec_command", command) == (
        "Bash",
        {"command": "ls", "workdir": "/w", "yield_time_ms": 5},
    )


@pytest.mark.parametrize("content", ["Buy bread", "", "one\r\ntwo\r\n", "it's\n%s"])
def test_a_file_that_a_patch_cant_write_is_written_by_a_command(content: str, tmp_path: Path):
    file = tmp_path / "a file.txt"
    arguments = {"file_path": str(file), "content": content}
    name, translated = translate("claude", "codex", "Write", arguments)
    assert name == "exec_command"
    subprocess.run(translated["cmd"], shell=True, check=True)
    assert file.read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Bash", {"command": "ls"}, ("bash", {"command": "ls"})),
        ("exec_command", {"cmd": "ls"}, ("bash", {"command": "ls"})),
        ("functions::exec_command", {"cmd": "ls"}, ("bash", {"command": "ls"})),
        ("read", {"filePath": "/a", "offset": 2}, ("read", {"path": "/a", "offset": 2})),
        ("read_file", {"file_path": "/a"}, ("read", {"path": "/a"})),
        ("read_file", {"path": "/a"}, ("read", {"path": "/a"})),
        ("mcp__desk__stamp", {"word": "x"}, ("mcp__desk__stamp", {"word": "x"})),
        ("unknown", {"x": 1}, ("unknown", {"x": 1})),
    ],
)
def test_tools_of_imported_conversations_are_recognised(name: str, arguments: Any, expected: tuple[str, Any]):
    assert translate("segue", "pi", name, arguments) == expected


def test_an_edit_of_all_places_has_no_counterpart_in_a_patch():
    edit = {"file_path": "/w/a.py", "old_string": "a", "new_string": "b", "replace_all": True}
    assert translate("claude", "codex", "Edit", edit) == ("Edit", edit)
    assert translate("claude", "codex", "Edit", {**edit, "replace_all": False})[0] == "apply_patch"


@pytest.mark.parametrize("name", ["Edit", "Write"])
def test_an_edit_without_its_arguments_is_kept(name: str):
    assert translate("claude", "codex", name, {}) == (name, {})


@pytest.mark.parametrize("target", ["claude", "codex", "gemini", "pi"])
@pytest.mark.parametrize("arguments", [{}, {"patch": "x"}, {"patchText": None}, {"patchText": ["x"]}])
def test_a_patch_without_its_text_is_kept(target: str, arguments: dict[str, Any]):
    assert translate("opencode", target, "apply_patch", arguments) == ("apply_patch", arguments)


def test_a_patch_with_other_arguments_keeps_them():
    arguments = {"patchText": SAMPLES["codex"]["patch"][1], "reason": "x"}
    assert translate("opencode", "claude", "apply_patch", arguments) == ("apply_patch", arguments)


def test_the_note_of_an_edit_is_not_in_a_patch():
    edit = {"file_path": "/w/a.py", "instruction": "Fix it", "old_string": "a", "new_string": "b"}
    name, patch = translate("gemini", "codex", "replace", edit)
    assert (name, "Fix it" in patch) == ("apply_patch", False)
    assert translate("gemini", "qwen", "replace", edit) == ("edit", edit)


def test_a_search_of_older_versions_is_recognised():
    assert translate("gemini", "claude", "search_file_content", {"pattern": "x", "path": "/w"}) == (
        "Grep",
        {"pattern": "x", "path": "/w"},
    )


@pytest.mark.parametrize("target", ["claude", "codex", "gemini", "qwen"])
@pytest.mark.parametrize(
    ("source", "name", "arguments"),
    [
        ("gemini", "read_many_files", {"include": ["*.py"]}),
        ("gemini", "save_memory", {"fact": "x"}),
        ("qwen", "save_memory", {"fact": "x", "scope": "project"}),
    ],
)
def test_tools_without_a_counterpart_are_kept(target: str, source: str, name: str, arguments: Any):
    if source != target:
        assert translate(source, target, name, arguments) == (name, arguments)


def test_a_patch_of_several_files_keeps_its_name():
    assert translate("codex", "claude", "apply_patch", TWO_FILES) == ("apply_patch", TWO_FILES)
    assert translate("codex", "opencode", "apply_patch", TWO_FILES) == ("apply_patch", {"patchText": TWO_FILES})


@pytest.mark.parametrize("source", ["claude", "gemini", "qwen", "pi", "segue"])
def test_opencode_reads_folders(source: str):
    assert translate(source, "opencode", *SAMPLES[source]["list"]) == ("read", {"filePath": "/w"})
    expected = SAMPLES[source]["list"]
    if "list" not in _DECLARED[source]:
        expected = SAMPLES[source]["shell"][0], {"command": "ls -la -- /w"}
    assert translate("opencode", source, "list", {"path": "/w"}) == expected


def test_a_patch_of_one_file_is_an_edit_or_a_write():
    name, patch = SAMPLES["codex"]["patch"]
    write = {"filePath": "/w/n.txt", "content": "one\ntwo\n"}
    assert translate("codex", "opencode", name, patch) == ("write", write)
    assert translate("opencode", "claude", "apply_patch", {"patchText": patch})[0] == "Write"


def test_paths_in_a_patch_become_absolute():
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch\n"
    assert translate("codex", "claude", "apply_patch", patch) == (
        "Edit",
        {"file_path": "/w/src/a.py", "old_string": "a", "new_string": "b"},
    )


def test_the_older_shell_of_codex_is_recognised():
    assert translate("codex", "claude", "shell", {"cmd": ["bash", "-lc", "ls | wc"]}) == (
        "Bash",
        {"command": "ls | wc"},
    )
    assert translate("codex", "claude", "shell", {"command": ["git", "log", "a b"]}) == (
        "Bash",
        {"command": "git log 'a b'"},
    )


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_tools_of_mcp_servers_keep_server_and_tool(source: str, target: str):
    # Gemini CLI takes the first "_" for the end of the server's name.
    server = "files" if source == "gemini" else "my_files"
    name = MCP_NAMES[source].form.format(server=server, tool="read_it")
    expected = MCP_NAMES[target].form.format(server=server, tool="read_it")
    assert translate(source, target, name, {"path": "a"}, ("my", "my_files")) == (expected, {"path": "a"})


def test_without_its_settings_a_name_of_opencode_is_kept():
    assert translate("opencode", "claude", "my_files_read", {}) == ("my_files_read", {})
    # A server whose name begins like a tool of the client.
    assert translate("opencode", "claude", "apply_patch", {"patchText": TWO_FILES}, ("apply",))[0] == "apply_patch"


def test_codex_has_a_namespace_for_each_mcp_server():
    assert translate("claude", "codex", "mcp__my-files__read", {}) == ("mcp__my_files__read", {})
    assert translate("codex", "claude", "mcp__my_files__read", {}) == ("mcp__my_files__read", {})


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('text((await tools.exec_command({cmd: "ls -la"})).output);', ("exec_command", {"cmd": "ls -la"})),
        (
            "const r = await tools.exec_command({ cmd: 'a \\'b\\'', n: [1, true,], }); text(r.output);",
            ("exec_command", {"cmd": "a 'b'", "n": [1, True]}),
        ),
        (
            "await tools.apply_patch(`*** Begin Patch\n*** End Patch`)",
            ("apply_patch", "*** Begin Patch\n*** End Patch"),
        ),
        ('text(await tools.view_image({path: "/a.png"}))', ("view_image", {"path": "/a.png"})),
        ("text((await tools.exec_command({cmd: name})).output);", None),
        ("text((await tools.exec_command({cmd: `ls ${name}`})).output);", None),
        ('await tools.exec_command({cmd: "a"}); await tools.exec_command({cmd: "b"});', None),
        ('text((await tools.exec_command({cmd: "a"})).output.slice(0, 9));', None),
        ("await tools.exec_command({cmd", None),
        ("for (;;) {}", None),
    ],
)
def test_a_program_of_one_call_is_that_call(program: str, expected: tuple[str, Any] | None):
    assert parse_program(program) == expected


@pytest.mark.parametrize("other", ["", " ?? r", " || r", " ?? JSON.stringify(r)"])
def test_a_program_may_name_what_it_returns_without_output(other: str):
    program = f'const r = await tools.exec_command({{cmd: "ls"}});\ntext(r.output{other});\n'
    assert parse_program(program) == ("exec_command", {"cmd": "ls"})
    assert parse_program(program.replace("text(r", "text(s")) is None


def test_programs_of_the_emulated_model_are_read_as_calls():
    assert parse_program(_SCRIPT.format(command='"cat notes.txt"')) == ("exec_command", {"cmd": "cat notes.txt"})


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (r'"\ud83d\ude00 \u{1F600} \u{0041} \x41 \u0041"', "\U0001f600 \U0001f600 A A A"),
        (r'"\u{D83D}\u{DE00}"', "\U0001f600"),
        (r"'\d \' \0 \n'", "d ' \0 \n"),
        ('"a\\\r\nb\\\nc"', "abc"),
        ("`a\r\nb`", "a\nb"),
        *((literal, None) for literal in (r'"\ud83d"', r'"\ude00\ud83d"', r"'\u{D83D}'", '"\ud83d"')),
        *(
            (f'"{escape}"', None)
            for escape in (r"\x4", r"\u12", r"\u{}", r"\u{110000}", r"\u{FFFFFFFFFF}", r"\1", r"\01")
        ),
    ],
)
def test_escapes_of_programs_are_those_of_javascript(literal: str, expected: str | None):
    call = ("exec_command", {"cmd": expected}) if expected is not None else None
    assert parse_program(f"await tools.exec_command({{cmd: {literal}}})") == call


def test_programs_of_codex_become_calls_of_the_other_client():
    program = 'text((await tools.exec_command({cmd: "ls"})).output);'
    assert translate("codex", "claude", "functions::exec", program) == ("Bash", {"command": "ls"})
    assert translate("codex", "claude", "functions::exec", "for (;;) {}") == ("exec", "for (;;) {}")
    result = "Script completed\nWall time 0.2 seconds\nOutput:\nout"
    assert translate_result("codex", "claude", "functions::exec", program, result) == ("out", False)


def test_unknown_tools_and_cut_arguments_are_kept():
    assert translate("claude", "codex", "Agent", {"prompt": "x"}) == ("Agent", {"prompt": "x"})
    call = ToolCall("Bash", {}, "c1", arguments_text='{"command": "l')
    message = Message("ai", (call,))
    assert Translator("claude", "codex", "/w").translate(message).message is message


RESULTS = [
    (
        "codex",
        "exec_command",
        "claude",
        "Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nout\n",
        "out\n",
        False,
    ),
    (
        "codex",
        "exec_command",
        "claude",
        "Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code 3\nOriginal token count: 2\nOutput:\nout",
        "Exit code 3\nout",
        True,
    ),
    ("codex", "exec_command", "segue", "Process exited with code 3\nOutput:\nout", "Exit code 3\nout", False),
    ("codex", "exec_command", "claude", "no header", "no header", False),
    ("codex", "exec_command", "qwen", "Process exited with code 0\nOutput:\nout", "Output: out", False),
    ("codex", "exec_command", "gemini", "Process exited with code 3\nOutput:\nout", "Output: out\nExit Code: 3", False),
    (
        "gemini",
        "run_shell_command",
        "claude",
        "<untrusted_context>\nOutput: a\nb\nExit Code: 3\nProcess Group PGID: 7\n</untrusted_context>",
        "Exit code 3\na\nb",
        True,
    ),
    (
        "qwen",
        "run_shell_command",
        "codex",
        "Command: ls\n  -l\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)",
        "Process exited with code 0\nOutput:\n",
        False,
    ),
    (
        "qwen",
        "run_shell_command",
        "claude",
        "Directory: (root)\nOutput: out\nError: spawn failed\nExit Code: (none)",
        "Directory: (root)\nOutput: out\nError: spawn failed\nExit Code: (none)",
        False,
    ),
]


@pytest.mark.parametrize(("source", "tool", "target", "text", "expected", "is_error"), RESULTS)
def test_results_have_the_form_of_the_client(
    source: str, tool: str, target: str, text: str, expected: str, is_error: bool
):
    argument = "cmd" if source == "codex" else "command"
    assert translate_result(source, target, tool, {argument: "x"}, text) == (expected, is_error)


def test_results_for_codex_have_an_exit_code():
    arguments = {"command": "x"}
    assert translate_result("claude", "codex", "Bash", arguments, "out") == (
        "Process exited with code 0\nOutput:\nout",
        False,
    )
    failed = translate_result("claude", "codex", "Bash", arguments, "Exit code 3\nout", error=True)
    assert failed == ("Process exited with code 3\nOutput:\nout", False)
    unknown = translate_result("claude", "codex", "Bash", arguments, "The user rejected it", error=True)
    assert unknown == ("The user rejected it", True)


def translate_result(
    source: str, target: str, tool: str, arguments: Any, text: str, *, error: bool = False
) -> tuple[str, bool]:
    translator = Translator(source, target, "/w")
    translator.translate(Message("ai", (ToolCall(tool, arguments, "c1"),)))
    response = ToolResponse("c1", tool, (Text(text),), error=error)
    (block,) = translator.translate(Message("tool", (response,))).message.blocks
    assert isinstance(block, ToolResponse)
    return text_of(block.content), block.error


@pytest.mark.parametrize("change", [FileWrite("a/b", "x\n\ny\n"), FileEdit("a", "x\n y", "z")])
def test_a_patch_of_one_change_is_parsed_back(change: FileWrite | FileEdit):
    text = render_write(change) if isinstance(change, FileWrite) else render_edit(change)
    assert text is not None
    assert parse_patch(text) == change


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n context\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n@@ def f\n-c\n+d\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a\n*** End Patch",
    ],
)
def test_other_patches_have_no_counterpart(text: str):
    assert parse_patch(text) is None

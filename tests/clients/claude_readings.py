"""Sessions of Claude Code for `readings`: what a session may contain, made by the client without a screen."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from segue.emulator.steps import CallStep, EndStep, ErrorStep, TextStep, ThinkStep, WaitStep
from tests.clients import mcp_server
from tests.clients.readings import Program, Reading, Scenario
from tests.clients.task import PICTURE_FILE
from tests.clients.terminals import Terminal

_ALLOWED = ("--allowedTools", "Read", "Edit", "Write", "Bash", "Agent", "Task", "ToolSearch", "Skill", "mcp__desk")
_STREAM = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
_ENDLESS = "touch started; tail -f /dev/null"
_MARK = "started"


def _bash(command: str, **more: Any) -> CallStep:
    return CallStep("Bash", {"command": command, "description": "Run it", **more})


def _read(reading: Reading, name: str) -> CallStep:
    return CallStep("Read", {"file_path": str(reading.work / name)})


def _prompt(reading: Reading, text: str, *replies: tuple[Any, ...], until: str | None = None, resumed: bool = False):
    more = ("--continue",) if resumed else ()
    reading.run("-p", text, *more, *_ALLOWED, replies=replies, until=until)


def _user(content: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


def _is_result(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "result"


def _interrupt(program: Program) -> None:
    program.send({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})
    program.receive(lambda value: value.get("type") == "control_response")


def _finish(program: Program) -> None:
    program.close_input()
    program.wait()


def _plain(reading: Reading) -> None:
    calls = (_read(reading, "alpha.txt"), _read(reading, PICTURE_FILE))
    _prompt(
        reading,
        "TASK-ONE: read.",
        (ThinkStep("First thought."), TextStep("First answer."), *calls),
        (ThinkStep("Second thought."), _bash("echo two")),
        (ThinkStep("Third thought."), TextStep("Third answer.")),
    )


def _resumed_twice(reading: Reading) -> None:
    _plain(reading)
    _prompt(reading, "TASK-TWO: go on.", (_bash("echo two"),), (TextStep("Two."),), resumed=True)
    _prompt(reading, "TASK-THREE: go on.", (ThinkStep("Hm."), _bash("false")), (TextStep("Three."),), resumed=True)


def _killed(reading: Reading) -> None:
    _plain(reading)
    calls = (_read(reading, "beta.txt"), _bash(_ENDLESS))
    _prompt(reading, "TASK-TWO: go on.", (TextStep("On it."), *calls), until=_MARK, resumed=True)


def _killed_and_resumed(reading: Reading) -> None:
    _killed(reading)
    _prompt(reading, "TASK-THREE: go on.", (TextStep("Three."),), resumed=True)


def _interrupted_call(reading: Reading) -> None:
    reading.add(ThinkStep("Hm."), TextStep("On it."), _read(reading, "alpha.txt"), _bash(_ENDLESS))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user("TASK-ONE: run it."))
        program.wait((reading.work / _MARK).exists)
        _interrupt(program)
        program.receive(_is_result)
        _finish(program)


def _interrupted_stream(reading: Reading) -> None:
    reading.add(ThinkStep("Hm."), TextStep("Half an answer."), WaitStep(20), TextStep("The rest."))
    with reading.start(*_STREAM, "--include-partial-messages", *_ALLOWED) as program:
        program.send(_user("TASK-ONE: run it."))
        program.receive(lambda value: "Half" in json.dumps(value) and value.get("type") == "stream_event")
        time.sleep(0.5)
        _interrupt(program)
        program.receive(_is_result)
        reading.add(TextStep("Second answer."))
        program.send(_user("TASK-TWO: go on."))
        program.receive(_is_result)
        _finish(program)


def _signalled_call(reading: Reading) -> None:
    reading.add(TextStep("On it."), _bash(_ENDLESS))
    with reading.start("-p", "TASK-ONE: run it.", *_ALLOWED) as program:
        program.close_input()
        program.wait((reading.work / _MARK).exists)
        program.interrupt()
        program.wait()


def _signalled_stream(reading: Reading) -> None:
    _plain(reading)
    reading.add(TextStep("Half an answer."), WaitStep(20), TextStep("The rest."))
    stream = ("--output-format", "stream-json", "--include-partial-messages", "--verbose")
    with reading.start("-p", "TASK-TWO: run it.", "--continue", *stream, *_ALLOWED) as program:
        program.close_input()
        program.receive(lambda value: "Half" in json.dumps(value) and value.get("type") == "stream_event")
        time.sleep(0.5)
        program.interrupt()
        program.wait()


def _compacted(reading: Reading) -> None:
    _plain(reading)
    _prompt(reading, "/compact", (TextStep("<summary>SUMMARY of it all.</summary>"),), resumed=True)


def _compacted_and_continued(reading: Reading) -> None:
    _compacted(reading)
    _prompt(reading, "TASK-TWO: go on.", (_bash("echo two"),), (TextStep("Two."),), resumed=True)


def _compacted_twice(reading: Reading) -> None:
    _compacted_and_continued(reading)
    _prompt(reading, "/compact keep the words", (TextStep("<summary>SECOND summary.</summary>"),), resumed=True)
    _prompt(reading, "TASK-THREE: go on.", (TextStep("Three."),), resumed=True)


def _compacted_automatically(reading: Reading) -> None:
    reading.variables = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "3"}
    (reading.work / "long.txt").write_text("".join(f"line {number} of a long file\n" for number in range(1500)))
    _prompt(
        reading,
        "TASK-ONE: read.",
        (TextStep("Reading."), _read(reading, "long.txt")),
        (TextStep("Again."), _bash("seq 1 4000")),
        (TextStep("Again."), _bash("seq 4000 8000")),
        (TextStep("Again."), _bash("seq 8000 12000")),
        (TextStep("<summary>AUTOMATIC summary.</summary>"),),
        (TextStep("After it."), _bash("echo after")),
        (TextStep("Done."),),
    )


def _rewound(reading: Reading) -> None:
    _plain(reading)
    _prompt(reading, "TASK-TWO: go on.", (_bash("echo two"),), (TextStep("Two."),), resumed=True)
    lines = [json.loads(line) for line in reading.find().path.read_text().splitlines()]
    last = [line["uuid"] for line in lines if "Third answer." in json.dumps(line) and line.get("type") == "assistant"]
    at = ("--resume", reading.find().id, "--resume-session-at", last[0])
    reading.run("-p", "TASK-OTHER: another way.", *at, *_ALLOWED, replies=[(TextStep("Other answer."),)])


def _forked(reading: Reading) -> None:
    _plain(reading)
    first = reading.find().id
    at = ("--resume", first, "--fork-session")
    reading.run("-p", "TASK-OTHER: another way.", *at, *_ALLOWED, replies=[(TextStep("Other answer."),)])
    assert reading.find().id != first


def _subagent(reading: Reading) -> None:
    agent = {"description": "Look", "prompt": "AGENT-TASK: look at it.", "subagent_type": "general-purpose"}
    _prompt(
        reading,
        "TASK-ONE: use an agent.",
        (TextStep("I use one."), CallStep("Agent", {**agent, "run_in_background": False})),
        (TextStep("Inside."), _bash("echo inside")),
        (TextStep("AGENT-REPORT: seen."),),
        (TextStep("The agent saw it."),),
        (TextStep("The agent saw it."),),
    )


def _mentioned(reading: Reading) -> None:
    (reading.work / "folder").mkdir()
    (reading.work / "folder" / "inner.txt").write_text("INNER\n")
    text = f"TASK-ONE: look at @alpha.txt and @{PICTURE_FILE} and @folder/ and @missing.txt."
    _prompt(reading, text, (TextStep("Seen."),))


def _pictures(reading: Reading) -> None:
    data = base64.b64encode((reading.work / PICTURE_FILE).read_bytes()).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    reading.add(TextStep("Seen."))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user([{"type": "text", "text": "TASK-ONE: look."}, {"type": "image", "source": source}]))
        program.receive(_is_result)
        _finish(program)


def _document(reading: Reading) -> None:
    pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 0/Kids[]>>endobj\n%%EOF\n"
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(pdf).decode()}
    reading.add(TextStep("Seen."))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user([{"type": "document", "source": source}, {"type": "text", "text": "TASK-ONE: look."}]))
        program.receive(_is_result)
        _finish(program)


def _background(reading: Reading) -> None:
    reading.add(TextStep("Starting."), _bash("sleep 1; echo BACKGROUND-DONE", run_in_background=True))
    reading.add(_bash("sleep 3; echo waited"))
    reading.add(TextStep("It ended."))
    reading.add(TextStep("It ended, I saw."))
    reading.add(TextStep("Yes."))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user("TASK-ONE: run it in the background."))
        program.receive(_is_result)
        time.sleep(3)
        program.send(_user("TASK-TWO: and now?"))
        program.receive(_is_result)
        _finish(program)


def _queued(reading: Reading) -> None:
    reading.add(TextStep("On it."), _bash("touch started; sleep 2; echo one"))
    reading.add(TextStep("Both seen."))
    reading.add(TextStep("More seen."))
    reading.add(TextStep("All seen."))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user("TASK-ONE: run it."))
        program.wait((reading.work / _MARK).exists)
        program.send(_user("TASK-QUEUED: and this."))
        program.send(_user([{"type": "text", "text": "TASK-QUEUED-TOO: and that."}]))
        program.receive(_is_result)
        time.sleep(3)
        _finish(program)


def _commands(reading: Reading) -> None:
    folder = reading.work / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "check.md").write_text("---\ndescription: Check\n---\nCHECK-COMMAND with $ARGUMENTS. !`echo SHELL-OUT`\n")
    _prompt(reading, "/check the words", (TextStep("Checked."),))
    _prompt(reading, "/cost", resumed=True)
    _prompt(reading, "/context", resumed=True)
    _prompt(reading, "TASK-TWO: go on.", (TextStep("Two."),), resumed=True)
    _prompt(reading, "/cost", resumed=True)


def _skill(reading: Reading) -> None:
    folder = reading.work / ".claude" / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets people.\n---\nGREET-SKILL: say hello.\n")
    _prompt(reading, "TASK-ONE: greet.", (CallStep("Skill", {"skill": "greet"}),), (TextStep("Hello."),))


_HOOK = "import json,sys; e=json.load(sys.stdin)['hook_event_name']; print(json.dumps({'hookSpecificOutput': {'hookEventName': e, 'additionalContext': 'CONTEXT of '+e}}))"  # noqa: E501


def _hooks(reading: Reading) -> None:
    entry = [{"hooks": [{"type": "command", "command": f'{sys.executable} -c "{_HOOK}"'}]}]
    stop = f"test -f {reading.work}/stopped || {{ touch {reading.work}/stopped; echo STOP-HOOK: not yet >&2; exit 2; }}"
    hooks = dict.fromkeys(("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"), entry)
    hooks["Stop"] = [{"hooks": [{"type": "command", "command": stop}]}]
    (reading.home / ".claude").mkdir(exist_ok=True)
    (reading.home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    calls = (_read(reading, "alpha.txt"), _bash("echo one"))
    _prompt(reading, "TASK-ONE: go.", (TextStep("On it."), *calls), (TextStep("Done."),), (TextStep("Really."),))


def _blocked(reading: Reading) -> None:
    block = f"{sys.executable} -c \"import sys; print('BLOCKED by a hook', file=sys.stderr); sys.exit(2)\""
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": block}]}]}
    (reading.home / ".claude").mkdir(exist_ok=True)
    (reading.home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    _prompt(reading, "TASK-ONE: go.", (TextStep("On it."), _bash("echo one")), (TextStep("Blocked."),))


def _server(reading: Reading) -> None:
    file = reading.home / "servers.json"
    command = [sys.executable, str(Path(mcp_server.__file__).resolve())]
    file.write_text(json.dumps({"mcpServers": {"desk": {"command": command[0], "args": command[1:]}}}))
    reading.arguments = ("--mcp-config", str(file))
    name = "mcp__desk__stamp_word"
    _prompt(
        reading,
        "TASK-ONE: stamp.",
        (CallStep("ToolSearch", {"query": f"select:{name}", "max_results": 3}),),
        (CallStep(name, {"word": "one"}), CallStep(name, {"word": mcp_server.PICTURE_WORD})),
        (TextStep("Stamped."),),
    )


def _errors(reading: Reading) -> None:
    _prompt(
        reading,
        "TASK-ONE: go.",
        (TextStep("On it."), _bash("echo one")),
        (ErrorStep(529),),
        (TextStep("Half an answer."), ErrorStep(529)),
        (TextStep("Whole answer."),),
        (TextStep("Whole answer."),),
    )


def _failed(reading: Reading) -> None:
    _prompt(reading, "TASK-ONE: go.", (TextStep("On it."), _bash("echo one")), (ErrorStep(403, "FORBIDDEN"),))


def _failed_and_resumed(reading: Reading) -> None:
    _failed(reading)
    _prompt(reading, "TASK-TWO: go on.", (TextStep("Two."),), resumed=True)


def _denied(reading: Reading) -> None:
    calls = (_bash("rm -rf build"), _read(reading, "alpha.txt"))
    reading.run("-p", "TASK-ONE: go.", "--allowedTools", "Read", replies=[calls, (TextStep("Denied."),)])


def _large(reading: Reading) -> None:
    _prompt(reading, "TASK-ONE: go.", (_bash("seq 1 60000"),), (TextStep("Large."),))


def _lengthy(reading: Reading) -> None:
    _prompt(
        reading,
        "TASK-ONE: go.",
        (ThinkStep("Hm."), TextStep("The first half"), EndStep("length")),
        (TextStep(" and the second half."),),
    )


def _edited(reading: Reading) -> None:
    """A file that was read is changed by the user."""
    reading.add(_read(reading, "alpha.txt"))
    reading.add(TextStep("Read."))
    with reading.start(*_STREAM, *_ALLOWED) as program:
        program.send(_user("TASK-ONE: read."))
        program.receive(_is_result)
        (reading.work / "alpha.txt").write_text("CHANGED by the user\n")
        reading.add(_bash("echo two"))
        reading.add(TextStep("Two."))
        program.send(_user("TASK-TWO: go on."))
        program.receive(_is_result)
        _finish(program)


def _instructions(reading: Reading) -> None:
    (reading.work / "CLAUDE.md").write_text("PROJECT-RULES\n")
    (reading.work / "inner").mkdir()
    (reading.work / "inner" / "CLAUDE.md").write_text("INNER-RULES\n")
    (reading.work / "inner" / "file.txt").write_text("INNER\n")
    _prompt(reading, "TASK-ONE: read.", (_read(reading, "inner/file.txt"),), (TextStep("Read."),))


def _empty(reading: Reading) -> None:
    """Results and replies without text."""
    calls = (_bash("true"), CallStep("Bash", {"command": "exit 3"}))
    _prompt(reading, "TASK-ONE: go.", calls, (ThinkStep("Only a thought."),), (TextStep("Now."),))


def _invalid(reading: Reading) -> None:
    """Calls that the client rejects: unknown tools, missing and cut arguments."""
    calls = (CallStep("Nothing", {"a": 1}), CallStep("Read", {}), CallStep("Bash", text='{"command": "echo'))
    _prompt(reading, "TASK-ONE: go.", (TextStep("Trying."), *calls), (TextStep("They failed."),))


def _moved_folder(reading: Reading) -> None:
    """A session whose commands change the folder."""
    (reading.work / "sub").mkdir()
    _prompt(reading, "TASK-ONE: go.", (_bash("cd sub && pwd"),), (_bash("pwd"),), (TextStep("Done."),))


def _open(reading: Reading) -> Terminal:
    """Start the client on a terminal, as one that was used before."""
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(reading.work): project}}
    (reading.home / ".claude.json").write_text(json.dumps(state))
    return reading.open("--permission-mode", "default", *_ALLOWED)


def _shell(reading: Reading) -> None:
    """A command of the user (`!`), and a prompt after it."""
    for word in ("One.", "Two.", "Three."):
        reading.add(TextStep(word))
    with _open(reading) as terminal:
        terminal.type("!", "echo USER-COMMAND", "\r", until=lambda: reading.has_written("USER-COMMAND", "One."))
        terminal.type("TASK-TWO: go.", "\r", until=lambda: reading.has_written("Two."))


def _rewound_by_menu(reading: Reading) -> None:
    """The conversation restored to the point before the second prompt, and continued from there."""
    for word in ("One.", "Two.", "Other answer."):
        reading.add(TextStep(word))
    with _open(reading) as terminal:
        terminal.type("TASK-ONE: go.", "\r", until=lambda: reading.has_written("One."))
        terminal.type("TASK-TWO: go.", "\r", until=lambda: reading.has_written("Two."))
        # The menu has the second prompt above the current point; its text is then in the input.
        terminal.type("/rewind", "\r", "\x1b[A", "\r", "\r", "\x15", until=lambda: True)
        terminal.type("TASK-OTHER: go.", "\r", until=lambda: reading.has_written("Other answer."))


def _escaped(reading: Reading) -> None:
    """A reply and a command that the user stopped with Escape."""
    reading.add(ThinkStep("Hm."), TextStep("Half an answer."), WaitStep(30), TextStep("The rest."))
    with _open(reading) as terminal:
        terminal.type("TASK-ONE: go.", "\r", until=lambda: bool(reading.script.exchanges))
        terminal.type("\x1b", until=lambda: reading.has_written("interrupted by user"))
        reading.add(TextStep("On it."), _bash(_ENDLESS))
        terminal.type("TASK-TWO: go.", "\r", until=(reading.work / _MARK).exists)
        terminal.type("\x1b", until=lambda: reading.has_written("for tool use"))


SCENARIOS: Mapping[str, Scenario] = {
    "plain": _plain,
    "resumed-twice": _resumed_twice,
    "killed": _killed,
    "killed-and-resumed": _killed_and_resumed,
    "interrupted-call": _interrupted_call,
    "interrupted-stream": _interrupted_stream,
    "signalled-call": _signalled_call,
    "signalled-stream": _signalled_stream,
    "compacted": _compacted,
    "compacted-and-continued": _compacted_and_continued,
    "compacted-twice": _compacted_twice,
    "compacted-automatically": _compacted_automatically,
    "rewound": _rewound,
    "forked": _forked,
    "subagent": _subagent,
    "mentioned": _mentioned,
    "pictures": _pictures,
    "document": _document,
    "background": _background,
    "queued": _queued,
    "commands": _commands,
    "skill": _skill,
    "hooks": _hooks,
    "blocked": _blocked,
    "server": _server,
    "errors": _errors,
    "failed": _failed,
    "failed-and-resumed": _failed_and_resumed,
    "denied": _denied,
    "large": _large,
    "lengthy": _lengthy,
    "edited": _edited,
    "instructions": _instructions,
    "empty": _empty,
    "invalid": _invalid,
    "moved-folder": _moved_folder,
    "shell": _shell,
    "rewound-by-menu": _rewound_by_menu,
    "escaped": _escaped,
}

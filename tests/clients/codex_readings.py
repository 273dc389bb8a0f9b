"""Sessions of Codex for `readings`: what a session may contain, made by `codex exec` and by its app server."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from segue.emulator.steps import CallStep, CutStep, ErrorStep, TextStep, ThinkStep, WaitStep
from segue.sessions.client import ClientHome, NewSession, SessionItem
from segue.sessions.files import Fingerprint
from segue.sessions.registry import CLIENTS
from tests.clients import mcp_server
from tests.clients.readings import Program, Reading, Scenario
from tests.clients.task import PICTURE_FILE

_FLAGS = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', "-m", "gpt-5.5")
_ENDLESS = "touch started; tail -f /dev/null"
_MARK = "started"


def _run(command: str, **more: Any) -> CallStep:
    return CallStep("exec_command", {"cmd": command, **more})


def _view(reading: Reading) -> CallStep:
    return CallStep("view_image", {"path": str(reading.work / PICTURE_FILE)})


def _patch(name: str, old: str, new: str) -> CallStep:
    return CallStep(
        "apply_patch", text=f"*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    )


def _prompt(
    reading: Reading,
    text: str,
    *replies: tuple[Any, ...],
    until: str | None = None,
    resumed: bool = False,
    more: Sequence[str] = (),
) -> None:
    head = ("exec", "resume", "--last") if resumed else ("exec",)
    # Pictures take any number of values.
    tail = (*more, "--", text) if more else (text,)
    reading.run(*head, *_FLAGS, *tail, replies=replies, until=until)


class _Server:
    """The app server of Codex: requests and notifications as lines of JSON."""

    def __init__(self, reading: Reading, *settings: str) -> None:
        arguments = [part for setting in settings for part in ("-c", setting)]
        self._program: Program = reading.start("app-server", *arguments)
        self._reading = reading
        self._number = 0
        self.thread = ""

    def __enter__(self) -> Self:
        info = {"clientInfo": {"name": "segue", "version": "1"}, "capabilities": {"experimentalApi": True}}
        self.call("initialize", **info)
        self._program.send({"method": "initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        # The session is written shortly after the turn ends.
        time.sleep(0.5)
        self._program.__exit__()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._program.send({"id": number, "method": method, "params": params})
        answer = self._program.receive(lambda value: value.get("id") == number and "method" not in value)
        if "error" in answer:
            raise ValueError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, method: str) -> dict[str, Any]:
        return self._program.receive(lambda value: value.get("method") == method)["params"]

    def start(self, **more: Any) -> None:
        params = {"cwd": str(self._reading.work), "model": "gpt-5.5", "sandbox": "danger-full-access", **more}
        self.thread = self.call("thread/start", approvalPolicy="never", **params)["thread"]["id"]

    def begin(self, *input: str | dict[str, Any]) -> str:
        """Start a turn and return its id."""
        items = [{"type": "text", "text": item} if isinstance(item, str) else item for item in input]
        return self.call("turn/start", threadId=self.thread, input=items)["turn"]["id"]

    def turn(self, *input: str | dict[str, Any], replies: Sequence[tuple[Any, ...]] = ()) -> str:
        """Run a turn to its end and return its id."""
        for steps in replies:
            self._reading.add(*steps)
        turn = self.begin(*input)
        self.wait("turn/completed")
        return turn

    def wait_for(self, path: Path) -> None:
        self._program.wait(path.exists)


def _plain(reading: Reading) -> None:
    _prompt(
        reading,
        "TASK-ONE: read.",
        (ThinkStep("First thought."), TextStep("First answer."), _run("cat alpha.txt"), _view(reading)),
        (ThinkStep("Second thought."), _patch("alpha.txt", "CONTENT-ALPHA", "EDITED")),
        (ThinkStep("Third thought."), TextStep("Third answer.")),
    )


def _resumed_twice(reading: Reading) -> None:
    _plain(reading)
    _prompt(reading, "TASK-TWO: go on.", (_run("echo two"),), (TextStep("Two."),), resumed=True)
    _prompt(reading, "TASK-THREE: go on.", (ThinkStep("Hm."), _run("false")), (TextStep("Three."),), resumed=True)


def _killed(reading: Reading) -> None:
    _plain(reading)
    replies = (TextStep("On it."), _run("cat beta.txt"), _run(_ENDLESS, yield_time_ms=60000))
    _prompt(reading, "TASK-TWO: go on.", replies, until=_MARK, resumed=True)


def _killed_and_resumed(reading: Reading) -> None:
    _killed(reading)
    _prompt(reading, "TASK-THREE: go on.", (TextStep("Three."),), resumed=True)


def _signalled_call(reading: Reading) -> None:
    reading.add(TextStep("On it."), _run(_ENDLESS, yield_time_ms=60000))
    with reading.start("exec", *_FLAGS, "TASK-ONE: run it.") as program:
        program.close_input()
        program.wait((reading.work / _MARK).exists)
        program.interrupt()
        program.wait()


def _interrupted_call(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        reading.add(ThinkStep("Hm."), TextStep("On it."), _run("cat beta.txt"), _run(_ENDLESS, yield_time_ms=60000))
        turn = server.begin("TASK-ONE: run it.")
        server.wait_for(reading.work / _MARK)
        server.call("turn/interrupt", threadId=server.thread, turnId=turn)
        server.wait("turn/completed")


def _interrupted_stream(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        server.turn("TASK-ONE: go.", replies=[(TextStep("One."),)])
        reading.add(ThinkStep("Hm."), TextStep("Half an answer."), WaitStep(20), TextStep("The rest."))
        turn = server.begin("TASK-TWO: go.")
        server.wait("item/agentMessage/delta")
        server.call("turn/interrupt", threadId=server.thread, turnId=turn)
        server.wait("turn/completed")


def _compacted(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        server.turn("TASK-ONE: go.", replies=[(ThinkStep("Hm."), _run("echo one")), (TextStep("One."),)])
        reading.add(TextStep("SUMMARY of it all."))
        server.call("thread/compact/start", threadId=server.thread)
        server.wait("turn/completed")


def _compacted_and_continued(reading: Reading) -> None:
    _compacted(reading)
    replies = [(ThinkStep("Hm."), _run("echo two")), (TextStep("Two."),)]
    _prompt(reading, "TASK-TWO: go on.", *replies, resumed=True)


def _compacted_automatically(reading: Reading) -> None:
    limit = ("-c", "model_auto_compact_token_limit=14000")
    _prompt(
        reading,
        "TASK-ONE: go.",
        (TextStep("Reading."), _run("seq 1 4000")),
        (TextStep("Again."), _run("seq 4000 8000")),
        (TextStep("AUTOMATIC summary."),),
        (TextStep("After it."), _run("echo after")),
        (TextStep("Done."),),
        (TextStep("Done."),),
        more=limit,
    )


def _reverted(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start(historyMode="paginated")
        server.turn("TASK-ONE: go.", replies=[(_run("echo one"),), (TextStep("One."),)])
        second = server.turn("TASK-TWO: go.", replies=[(_run("echo two"),), (TextStep("Two."),)])
        server.turn("TASK-THREE: go.", replies=[(TextStep("Three."),)])
        server.call("thread/revert", threadId=server.thread, beforeTurnId=second)
        server.turn("TASK-OTHER: another way.", replies=[(TextStep("Other."),)])


def _forked(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        first = server.turn("TASK-ONE: go.", replies=[(ThinkStep("Hm."), _run("echo one")), (TextStep("One."),)])
        server.turn("TASK-TWO: go.", replies=[(TextStep("Two."),)])
        forked = server.call("thread/fork", threadId=server.thread, lastTurnId=first, model="gpt-5.5")
        server.thread = reading.session = forked["thread"]["id"]
        server.turn("TASK-OTHER: another way.", replies=[(TextStep("Other."),)])


def _forked_paginated(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start(historyMode="paginated")
        server.turn("TASK-ONE: go.", replies=[(ThinkStep("Hm."), _run("echo one")), (TextStep("One."),)])
        forked = server.call("thread/fork", threadId=server.thread, model="gpt-5.5")
        server.thread = reading.session = forked["thread"]["id"]
        server.turn("TASK-OTHER: another way.", replies=[(TextStep("Other."),)])


def _compressed(reading: Reading) -> None:
    """A session that the client compressed, since it is old."""
    _plain(reading)
    plain = reading.find().path
    os.utime(plain, (0, 0))
    with _Server(reading, "features.local_thread_store_compression=true") as server:
        server.wait_for(plain.with_name(f"{plain.name}.zst"))
    assert not plain.exists()


def _compressed_and_extended(reading: Reading) -> None:
    """A compressed session to which segue added a turn, in a plain file beside it."""
    _compressed(reading)
    _extend(reading)


def _forked_and_extended(reading: Reading) -> None:
    """A fork to which segue added a turn."""
    _forked(reading)
    _extend(reading)


def _extend(reading: Reading) -> None:
    client, home, file = CLIENTS["codex"], ClientHome(reading.home, {}), reading.find()
    data = client.load(home, file)
    items = (
        SessionItem({"role": "user", "content": "MOVED prompt."}),
        SessionItem({"role": "assistant", "content": "MOVED answer."}),
    )
    draft = NewSession(file.id, items, str(reading.work), time.time_ns() // 1000)
    client.extend(home, file, Fingerprint.of(data), client.writer.encode_more(data, draft))


def _subagent(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        reading.session = server.thread
        replies = [
            (CallStep("tool_search", {"query": "spawn agent"}),),
            (TextStep("I use one."), CallStep("multi_agent_v1::spawn_agent", {"message": "AGENT-TASK: look."})),
            (TextStep("Seen by both."),),
            (TextStep("Seen by both."),),
            (TextStep("Seen by both."),),
        ]
        server.turn("TASK-ONE: use an agent.", replies=replies)
        time.sleep(2)


def _pictures(reading: Reading) -> None:
    picture = str(reading.work / PICTURE_FILE)
    _prompt(reading, "TASK-ONE: look.", (TextStep("Seen."),), more=("-i", picture))


def _attached(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        image = {"type": "localImage", "path": str(reading.work / PICTURE_FILE)}
        server.turn("TASK-ONE: look.", image, "And @alpha.txt.", replies=[(TextStep("Seen."),)])


def _background(reading: Reading) -> None:
    command = _run("echo BEGUN; sleep 3; echo ENDED", yield_time_ms=300)
    _prompt(
        reading,
        "TASK-ONE: run it in the background.",
        (TextStep("Starting."), command),
        (CallStep("write_stdin", {"session_id": 1000, "chars": "", "yield_time_ms": 5000}),),
        (TextStep("It ended."),),
    )


def _steered(reading: Reading) -> None:
    with _Server(reading) as server:
        server.start()
        reading.add(TextStep("On it."), _run("touch started; sleep 2; echo one", yield_time_ms=10000))
        reading.add(TextStep("Both seen."))
        turn = server.begin("TASK-ONE: run it.")
        server.wait_for(reading.work / _MARK)
        extra = [{"type": "text", "text": "TASK-STEER: and this."}]
        server.call("turn/steer", threadId=server.thread, expectedTurnId=turn, input=extra)
        server.wait("turn/completed")


def _shell(reading: Reading) -> None:
    """A command of the user (`!`), between turns."""
    with _Server(reading) as server:
        server.start()
        server.turn("TASK-ONE: go.", replies=[(TextStep("One."),)])
        server.call("thread/shellCommand", threadId=server.thread, command="echo USER-COMMAND")
        server.wait("turn/completed")
        server.turn("TASK-TWO: go.", replies=[(TextStep("Two."),)])
        server.call("thread/shellCommand", threadId=server.thread, command="echo LAST-COMMAND")
        server.wait("turn/completed")


def _server(reading: Reading) -> None:
    command = [sys.executable, str(Path(mcp_server.__file__).resolve())]
    lines = f"command = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
    (reading.home / ".codex" / "config.toml").write_text(f"[mcp_servers.{mcp_server.SERVER}]\n{lines}")
    reading.arguments = ()
    _prompt(
        reading,
        "TASK-ONE: stamp.",
        (CallStep("tool_search", {"query": "stamp a word"}),),
        (CallStep(mcp_server.TOOL, {"word": "one"}), CallStep(mcp_server.TOOL, {"word": mcp_server.PICTURE_WORD})),
        (TextStep("Stamped."),),
    )


def _errors(reading: Reading) -> None:
    _prompt(
        reading,
        "TASK-ONE: go.",
        (TextStep("On it."), _run("echo one")),
        (ErrorStep(500),),
        (TextStep("Half an answer."), CutStep()),
        (ThinkStep("Hm."), _run("echo two"), CutStep()),
        (TextStep("Whole answer."),),
        (TextStep("Whole answer."),),
    )


def _failed(reading: Reading) -> None:
    _prompt(reading, "TASK-ONE: go.", (TextStep("On it."), _run("echo one")), (ErrorStep(403, "FORBIDDEN"),))


def _failed_and_resumed(reading: Reading) -> None:
    _failed(reading)
    _prompt(reading, "TASK-TWO: go on.", (TextStep("Two."),), resumed=True)


def _denied(reading: Reading) -> None:
    reading.add(TextStep("On it."), _run("rm -rf /nonexistent", sandbox_permissions="require_escalated"))
    reading.add(TextStep("Denied."))
    flags = ("--skip-git-repo-check", "-c", 'sandbox_mode="read-only"', "-m", "gpt-5.5")
    reading.run("exec", *flags, "TASK-ONE: go.")


def _large(reading: Reading) -> None:
    replies = ((_run("seq 1 60000"),), (_run("seq 1 60000", max_output_tokens=40000),), (TextStep("Large."),))
    _prompt(reading, "TASK-ONE: go.", *replies)


def _invalid(reading: Reading) -> None:
    """Calls that the client rejects: unknown tools, missing and cut arguments."""
    calls = (CallStep("nothing", {"a": 1}), _run("echo one"), CallStep("exec_command", {}))
    calls = (*calls, CallStep("exec_command", text='{"cmd": "echo'))
    _prompt(reading, "TASK-ONE: go.", (TextStep("Trying."), *calls), (TextStep("They failed."),))


def _plan(reading: Reading) -> None:
    plan = [{"step": "One", "status": "in_progress"}, {"step": "Two", "status": "pending"}]
    _prompt(reading, "TASK-ONE: plan.", (CallStep("update_plan", {"plan": plan}),), (TextStep("Planned."),))


def _instructions(reading: Reading) -> None:
    (reading.work / "AGENTS.md").write_text("PROJECT-RULES\n")
    _prompt(reading, "TASK-ONE: go.", (_run("echo one"),), (TextStep("One."),))


def _programs(reading: Reading) -> None:
    """Programs of newer models, in free text."""
    reading.script.only_tool = "exec"
    flags = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"')
    reading.resume = lambda prompt, id: ("exec", "resume", id, *flags, prompt)

    def program(command: str) -> CallStep:
        text = f"text((await tools.exec_command({{cmd: {json.dumps(command)}}})).output);"
        return CallStep("exec", {"input": text})

    picture = CallStep("exec", {"input": f"image({json.dumps(str(reading.work / PICTURE_FILE))});"})
    replies = [(ThinkStep("Hm."), program("echo one"), program("cat alpha.txt")), (picture,), (TextStep("Done."),)]
    reading.run("exec", *flags, "TASK-ONE: go.", replies=replies)
    _interrupt_program(reading, flags, program(_ENDLESS))


def _interrupt_program(reading: Reading, flags: Sequence[str], call: CallStep) -> None:
    replies = [(TextStep("On it."), call)]
    reading.run("exec", "resume", "--last", *flags, "TASK-TWO: go.", replies=replies, until=_MARK)


def _hooks(reading: Reading) -> None:
    context = "import json,sys; e=json.load(sys.stdin)['hook_event_name']; print(json.dumps({'hookSpecificOutput': {'hookEventName': e, 'additionalContext': 'CONTEXT of '+e}}))"  # noqa: E501
    command = f'{sys.executable} -c "{context}"'
    stop = f"test -f {reading.work}/stopped || {{ touch {reading.work}/stopped; echo STOP-HOOK: not yet >&2; exit 2; }}"
    names = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")
    hooks = {name: [{"hooks": [{"type": "command", "command": command}]}] for name in names}
    hooks["Stop"] = [{"hooks": [{"type": "command", "command": stop}]}]
    (reading.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    reading.arguments = ("--dangerously-bypass-hook-trust",)
    _prompt(reading, "TASK-ONE: go.", (_run("echo one"),), (TextStep("One."),), (TextStep("Really."),))


def _reviewed(reading: Reading) -> None:
    """A review, which runs in a thread of its own and leaves its result."""
    with _Server(reading) as server:
        server.start()
        reading.session = server.thread
        server.turn("TASK-ONE: go.", replies=[(TextStep("One."),)])
        reading.add(TextStep('{"findings": [], "overall_correctness": "fine", "overall_explanation": "REVIEWED"}'))
        target = {"type": "custom", "instructions": "REVIEW-TASK"}
        server.call("review/start", threadId=server.thread, target=target, delivery="inline")
        server.wait("turn/completed")
        server.turn("TASK-TWO: go.", replies=[(TextStep("Two."),)])


def _injected(reading: Reading) -> None:
    """Items of every kind, put into the history by another program."""
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "INJECTED prompt"}]},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "the word"},
        },
        {
            "type": "custom_tool_call",
            "call_id": "call_c1",
            "name": "apply_patch",
            "input": "*** Begin Patch\n*** End Patch",
        },
        {"type": "custom_tool_call_output", "call_id": "call_c1", "output": "PATCHED"},
        {"type": "function_call", "call_id": "call_f1", "name": "exec_command", "arguments": '{"cmd":"echo"}'},
        {"type": "function_call_output", "call_id": "call_f1", "output": [{"type": "input_text", "text": "OUT"}]},
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_l1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"]},
        },
        {"type": "function_call_output", "call_id": "call_l1", "output": "LISTED"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "INJECTED answer"}]},
    ]
    with _Server(reading) as server:
        server.start()
        server.turn("TASK-ONE: go.", replies=[(TextStep("One."),)])
        server.call("thread/inject_items", threadId=server.thread, items=items)
        server.turn("TASK-TWO: go.", replies=[(TextStep("Two."),)])


SCENARIOS: Mapping[str, Scenario] = {
    "plain": _plain,
    "resumed-twice": _resumed_twice,
    "killed": _killed,
    "killed-and-resumed": _killed_and_resumed,
    "interrupted-call": _interrupted_call,
    "interrupted-stream": _interrupted_stream,
    "signalled-call": _signalled_call,
    "compacted": _compacted,
    "compacted-and-continued": _compacted_and_continued,
    "compacted-automatically": _compacted_automatically,
    "reverted": _reverted,
    "forked": _forked,
    "forked-paginated": _forked_paginated,
    "compressed": _compressed,
    "compressed-and-extended": _compressed_and_extended,
    "forked-and-extended": _forked_and_extended,
    "subagent": _subagent,
    "pictures": _pictures,
    "attached": _attached,
    "background": _background,
    "steered": _steered,
    "shell": _shell,
    "server": _server,
    "errors": _errors,
    "failed": _failed,
    "failed-and-resumed": _failed_and_resumed,
    "denied": _denied,
    "large": _large,
    "invalid": _invalid,
    "plan": _plan,
    "instructions": _instructions,
    "programs": _programs,
    "hooks": _hooks,
    "reviewed": _reviewed,
    "injected": _injected,
}

"""The task of a run: what the model replies, round by round, and how a misbehaving provider changes that.

Three rounds for the first prompt (two parallel reads, a command, text) and two for each other one (a command, text).
Every command appends a line to a file, so that the number of times it ran can be counted.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from segue.emulator.steps import CallStep, CutStep, ErrorStep, ReplySteps, TextStep, ThinkStep, WaitStep
from tests.clients import mcp_server
from tests.clients.rows import ClientRow

FILES: Mapping[str, str] = {"alpha.txt": "CONTENT-ALPHA\n", "beta.txt": "CONTENT-BETA\n"}
PICTURE_FILE = "red.png"
RAN_FILE = "ran.txt"
TOOL_MARK = "@@"
"""Stands before and after the name of a tool in a text; the provider gets another name for some tools."""
_LONG_ID = 200
_STALL_SECONDS = 20.0


class ExpectedCall(Struct, frozen=True):
    """A call of the model: its tool, its arguments, and a text that only its real result has; None for a picture.

    `word` is the line that it appends to the file.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: str | None
    word: str | None = None


class Round(Struct, frozen=True):
    """One reply of the model. `is_broken`: it ends in an error, and the request must be repeated."""

    prompt: int
    calls: tuple[ExpectedCall, ...]
    steps: ReplySteps
    is_broken: bool = False


class Misbehaviour(Struct, frozen=True):
    """How a provider misbehaves: faults of the emulator, and a change of the rounds. Or another task.

    `has_picture`: one of the files read is a picture. `has_server`: a tool of an MCP server runs the commands.
    `changes_model`: `segue route` selects another provider for the second of three prompts. `restarts`: the client runs
    behind `segue serve --store`, which is started again before the second prompt.
    """

    title: str
    faults: tuple[str, ...] = ()
    change: Callable[[Sequence[Round]], list[Round]] = list
    has_picture: bool = False
    has_server: bool = False
    changes_model: bool = False
    restarts: bool = False


def write_files(folder: Path) -> None:
    """Write the files that the task begins with."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / PICTURE_FILE).write_bytes(make_picture(64))


def make_picture(size: int) -> bytes:
    """Return a red square as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\x20\x20" * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def list_words(rounds: Sequence[Round]) -> list[str]:
    """Return the lines that the commands of all rounds append to the file."""
    return [call.word for each in rounds for call in each.calls if call.word is not None]


def build_rounds(client: ClientRow, folder: Path, task: Misbehaviour | None = None) -> list[Round]:
    """Return the rounds of a task, with the client's own tools."""
    task = task or MISBEHAVIOURS[PLAIN]

    def read(name: str) -> ExpectedCall:
        return ExpectedCall(client.read_tool, client.build_read(folder / name), FILES[name].strip())

    def run(word: str) -> ExpectedCall:
        result = f"RESULT-{word}".upper()
        # The result's text is not in the command: some clients repeat the command beside its output. Qwen Code loses
        # the output of a command that ends at once.
        command = f"echo {word} >> {RAN_FILE} && echo RESULT-{word} | tr a-z A-Z; sleep 0.5"
        call = (client.shell_tool, client.build_command(command))
        if task.has_server and client.server is not None:
            call = client.server.build_call(word)
        return ExpectedCall(*call, result, word)

    second = read("beta.txt")
    if task.has_picture:
        second = ExpectedCall(*client.build_picture_call(folder / PICTURE_FILE), None)
    elif task.has_server and client.server is not None and client.server.search is not None:
        second = ExpectedCall(*client.server.search, mcp_server.TOOL)
    rounds = [
        _make_round(1, "First", read("alpha.txt"), second),
        _make_round(1, "Second", run("one")),
        _make_round(1, "Third"),
        _make_round(2, "Fourth", run("two")),
        _make_round(2, "Fifth"),
    ]
    return [*rounds, _make_round(3, "Sixth", run("three")), _make_round(3, "Seventh")] if task.changes_model else rounds


def _make_round(prompt: int, word: str, *calls: ExpectedCall) -> Round:
    steps = [CallStep(call.tool, call.arguments) for call in calls]
    return Round(prompt, calls, (ThinkStep(f"{word} thought."), TextStep(f"{word} answer."), *steps))


# -------------------------------------------------------------------------------------------------------- misbehaviours


def _with_ids(make_id: Callable[[int, str], str]) -> Callable[[Sequence[Round]], list[Round]]:
    """Return a change that sets the ids of all calls, by their number and tool."""

    def change(rounds: Sequence[Round]) -> list[Round]:
        number = 0
        changed: list[Round] = []
        for each in rounds:
            steps: list[Any] = []
            for step in each.steps:
                if isinstance(step, CallStep):
                    steps.append(msgspec.structs.replace(step, id=make_id(number, step.name)))
                    number += 1
                else:
                    steps.append(step)
            changed.append(msgspec.structs.replace(each, steps=tuple(steps)))
        return changed

    return change


def _with_broken_second(*steps: Any) -> Callable[[Sequence[Round]], list[Round]]:
    """Return a change that inserts a broken reply before the second round."""

    def change(rounds: Sequence[Round]) -> list[Round]:
        return [rounds[0], Round(1, (), steps, is_broken=True), *rounds[1:]]

    return change


def _cut_in_call(rounds: Sequence[Round]) -> list[Round]:
    (call,) = rounds[1].calls
    text = msgspec.json.encode(call.arguments).decode()
    steps = (TextStep("Half an answer."), CallStep(call.tool, text=text[: len(text) // 2]), CutStep())
    return _with_broken_second(*steps)(rounds)


def _stall(rounds: Sequence[Round]) -> list[Round]:
    think, text, call = rounds[1].steps
    return [
        rounds[0],
        msgspec.structs.replace(rounds[1], steps=(think, text, WaitStep(_STALL_SECONDS), call)),
        *rounds[2:],
    ]


def _with_text_call(form: str) -> Callable[[Sequence[Round]], list[Round]]:
    """Return a change that writes the second round's call into the text, as models do where a server misses it."""

    def change(rounds: Sequence[Round]) -> list[Round]:
        (call,) = rounds[1].calls
        name = f"{TOOL_MARK}{call.tool}{TOOL_MARK}"
        text = form.replace("NAME", name).replace("ARGUMENTS", msgspec.json.encode(call.arguments).decode())
        steps = (TextStep(f"Second answer.{text}"),)
        return [rounds[0], msgspec.structs.replace(rounds[1], steps=steps), *rounds[2:]]

    return change


_KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:2<|tool_call_argument_begin|>ARGUMENTS"
    "<|tool_call_end|><|tool_calls_section_end|>"
)
_DEEPSEEK_CALL = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)


PLAIN = "plain"
MISBEHAVIOURS: Mapping[str, Misbehaviour] = {
    PLAIN: Misbehaviour("none"),
    "constant-id": Misbehaviour("one id for all calls", change=_with_ids(lambda *_: "call_1")),
    "repeated-ids": Misbehaviour("ids that repeat in every reply", ("repeated-ids",)),
    "missing-ids": Misbehaviour("no ids", ("missing-ids",)),
    "empty-ids": Misbehaviour("empty ids", ("empty-ids",)),
    "k2-ids": Misbehaviour("ids of Kimi K2", change=_with_ids(lambda number, tool: f"functions.{tool}:{number}")),
    "long-ids": Misbehaviour(
        "ids of 200 characters", change=_with_ids(lambda number, _: f"{number}".rjust(_LONG_ID, "x"))
    ),
    "kimi-text": Misbehaviour("a call inside the text, in Kimi's form", change=_with_text_call(_KIMI_CALL)),
    "deepseek-text": Misbehaviour("a call inside the text, in DeepSeek's form", change=_with_text_call(_DEEPSEEK_CALL)),
    "429": Misbehaviour("status 429", change=_with_broken_second(ErrorStep(429, retry_after=1))),
    "529": Misbehaviour("status 529", change=_with_broken_second(ErrorStep(529))),
    "500": Misbehaviour("status 500", change=_with_broken_second(ErrorStep(500))),
    "stall": Misbehaviour("a pause of 20 seconds in the stream", change=_stall),
    "error-event": Misbehaviour(
        "an error inside the stream", change=_with_broken_second(TextStep("Half an answer."), ErrorStep(529))
    ),
    "cut-text": Misbehaviour(
        "the stream ends inside a text", change=_with_broken_second(TextStep("Half an answer."), CutStep())
    ),
    "cut-call": Misbehaviour("the stream ends inside a call", change=_cut_in_call),
    "reset": Misbehaviour(
        "the connection is reset", change=_with_broken_second(TextStep("Half an answer."), CutStep("reset"))
    ),
    "picture": Misbehaviour("none; a tool's result is a picture", has_picture=True),
    "deferred": Misbehaviour("none; a tool of an MCP server, which the model searches first", has_server=True),
    "switch": Misbehaviour("none; `segue route` selects another model, then the first again", changes_model=True),
    "restart": Misbehaviour("none; `segue serve --store` is started again", restarts=True),
}

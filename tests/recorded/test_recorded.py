"""The judge itself, on two recordings made up in the format of pydantic-ai's cassettes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorded.__main__ import run
from tests.recorded.cassettes import read_exchanges

MADE_UP = Path(__file__).parent.parent / "data" / "recorded"


def test_exchanges_have_the_api_model_and_answer_of_their_url() -> None:
    stream, call, rejected = read_exchanges(MADE_UP)
    assert (stream.wire.name, stream.model, stream.status, stream.reply) == ("gemini", "gemini-2.5-flash", 200, None)
    assert (call.wire.name, call.model, call.status, call.stream) == ("openai-chat", None, 200, None)
    assert (rejected.name, rejected.status) == ("cassettes/tool_call#1", 400)


def test_traffic_as_segue_expects_it_has_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(read_exchanges(MADE_UP)) == 0
    assert capsys.readouterr().out.splitlines()[1:4] == ["3 exchanges", "      2 openai-chat", "      1 gemini"]


@pytest.mark.parametrize(
    ("file", "old", "new", "kind"),
    [
        ("tool_call", "code: 400", "code: 200", "check: expected 200; found OAI-CHAT-04"),
        ("tool_call", "code: 200", "code: 400", "check: expected 400"),
        ("tool_call", "choices:", "choices: null\n      odd:", "reply: expected no error"),
        ("stream", "data:", "date:", "stream: expected no error"),
        ("tool_call", "role: assistant", "role: oracle", "appended: convert openai-chat: expected a valid body"),
    ],
)
def test_other_traffic_is_a_difference(tmp_path: Path, file: str, old: str, new: str, kind: str) -> None:
    folder = tmp_path / "cassettes"
    folder.mkdir()
    text = (MADE_UP / "cassettes" / f"{file}.yaml").read_text("utf-8")
    assert old in text
    (folder / f"{file}.yaml").write_text(text.replace(old, new), "utf-8")
    command = [sys.executable, "-m", "tests.recorded", str(tmp_path), "--only", file]
    done = subprocess.run(command, cwd=MADE_UP.parent.parent.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert kind in done.stdout.splitlines()[0]


def test_folder_without_cassettes_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(read_exchanges(tmp_path)) == 1
    assert "no exchange was found" in capsys.readouterr().err

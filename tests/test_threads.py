"""The first use of segue may be in many threads at once; a failure here crashed the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.process import environment

TOGETHER = """
import random, sys, threading
sys.setswitchinterval(1e-6)

def together(do):
    def late(count):
        for _ in range(count):
            pass
        do()

    threads = [threading.Thread(target=late, args=(random.randrange(5000),)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
TYPES = """
import msgspec
from segue.canonical.type_warmup import warm_type

for _ in range(300):
    inner = msgspec.defstruct("Inner", [("x", int | None, None), ("y", tuple[str, ...] | None, None)])
    middle = msgspec.defstruct("Middle", [("a", inner | None, None), ("b", list[inner] | None, None)])
    outer = msgspec.defstruct("Outer", [("z", int | None, None), ("m", middle | None, None), ("i", inner | None, None)])
    together(lambda: msgspec.convert({"z": 1, "m": {"a": {"x": 1}}, "i": {"y": ["a"]}}, warm_type(outer)))
print("over")
"""
USERS = """
import json, segue

call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
asks = {"role": "assistant", "content": None, "tool_calls": [call]}
result = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}, asks, result]}

def use():
    segue.convert(json.dumps(body).encode(), target="anthropic", source="openai-chat")
    segue.convert(body, target="openai-chat", source="openai-chat")
    chat = segue.Conversation()
    chat.add_user("Hello.")
    chat.options = {"max_tokens": 3, "tool_choice": {"mode": "auto"}, "reasoning": {"enabled": True}}
    segue.Conversation.load(chat.dump()).render("gemini", "gemini-2.5-pro")

together(use)
print("over")
"""


@pytest.mark.parametrize(("code", "times"), [(TYPES, 1), (USERS, 3)], ids=["types", "users"])
def test_first_use_in_many_threads(code: str, times: int) -> None:
    for _ in range(times):
        assert ended(TOGETHER + code) == (0, "over\n", "")


def ended(code: str) -> tuple[int, str, str]:
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=100, check=False
    )
    return process.returncode, process.stdout, process.stderr

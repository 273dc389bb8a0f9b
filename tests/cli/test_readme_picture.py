"""The picture of the chat in the README: a failing test is found with one model, fixed and run with another."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import segue.emulator
from tests.cli.process import environment
from tests.cli.screenshot import compare_screenshot
from tests.cli.terminal_session import PROMPT, TerminalSession

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
PICTURE = Path(__file__).parents[2] / "docs" / "chat.svg"
PRICES = "def total(prices, discount):\n    return sum(prices) * (1 + discount)\n"
TEST = """\
from prices import total

cases = {"a tenth": (0.1, 90.0), "no discount": (0, 100.0)}
failed = 0
for name, (discount, expected) in cases.items():
    found = round(total([60.0, 40.0], discount), 2)
    print("ok  " if found == expected else "FAIL", f"{name}: {found}")
    failed += found != expected
raise SystemExit(failed)
"""
# Providers on this machine have no price of their own.
CONFIG = """\
switch_cost_above = 1000
[prices."anthropic/claude-sonnet-5"]
input = 2.0
output = 10.0
cache_read = 0.2
cache_write = 2.5
[prices."moonshot/kimi-k2.6"]
input = 0.95
output = 4.0
cache_read = 0.16
"""
CLAUDE = """
    call shell {"command": "python3 test_prices.py"}
    call read_file {"path": "prices.py"}
    ---
    say Line 2 of prices.py adds the discount to the price; it has to be taken off.
"""
KIMI = """
    call edit_file {"path": "prices.py", "old_string": "(1 + discount)", "new_string": "(1 - discount)"}
    ---
    call shell {"command": "python3 test_prices.py"}
    ---
    say Fixed: the discount is taken off now, and both cases pass.
"""


def test_a_failing_test_is_fixed_with_two_models(tmp_path: Path) -> None:
    work, config = tmp_path / "shop", tmp_path / "home" / ".config" / "segue"
    work.mkdir()
    config.mkdir(parents=True)
    (config / "config.toml").write_text(CONFIG)
    (work / "prices.py").write_text(PRICES)
    (work / "test_prices.py").write_text(TEST)
    with ExitStack() as stack:
        claude = stack.enter_context(segue.emulator.start("anthropic", script=CLAUDE))
        kimi = stack.enter_context(segue.emulator.start("kimi", script=KIMI))
        variables = environment(
            HOME=str(tmp_path / "home"),
            XDG_CONFIG_HOME=str(config.parent),
            SEGUE_STORE=str(tmp_path / "chats.db"),
            # Within a second the bytecode of the changed file would count as current.
            PYTHONDONTWRITEBYTECODE="1",
            ANTHROPIC_API_KEY="a-key-for-tests",
            ANTHROPIC_BASE_URL=claude.base_url,
            MOONSHOT_API_KEY="a-key-for-tests",
            MOONSHOT_BASE_URL=kimi.base_url,
        )
        arguments = ("-m", "anthropic/claude-sonnet-5", "--allow", "shell")
        chat = stack.enter_context(TerminalSession("chat", *arguments, environment=variables, folder=work, rows=47))
        chat.wait_for_text(PROMPT)
        chat.enter("A test fails. Why?")
        chat.wait_for_text("it has to be taken off.")
        chat.enter("/model moonshot/kimi-k2.6")
        chat.wait_for_text("from the next request")
        chat.enter("Fix it, and run the test again.")
        chat.wait_for_text("(1 - discount)")
        chat.enter("y")
        chat.wait_for_text("both cases pass.")
        chat.wait_for_text("changed prices.py")
        chat.wait_for_text("ask anything")
        compare_screenshot(chat, PICTURE, "segue chat: Claude finds why a test fails, Kimi fixes it and runs it")
    assert "1 - discount" in (work / "prices.py").read_text()

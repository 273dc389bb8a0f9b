"""Every command on a file that is damaged or not a store: exit code 2 and one line that names the file."""

from __future__ import annotations

import pytest

from tests.cli.bodies import OPEN
from tests.cli.store_cli import StoreCli
from tests.store.damage import UNUSABLE

COMMANDS: dict[str, tuple[list[str], bytes]] = {
    "log": (["log"], b""),
    "show": (["log", "show", "1n"], b""),
    "search": (["log", "search", "word"], b""),
    "delete": (["log", "delete", "1n", "--yes"], b""),
    "export": (["export", "1n", "--format", "md"], b""),
    "diag": (["diag", "1n"], b""),
    "compress": (["compress", "1n", "--undo"], b""),
    "import": (["import"], OPEN),
    "run": (["run", "--emulated", "hello"], b""),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_each_command_names_the_file(store_cli: StoreCli, case: str):
    UNUSABLE[case](store_cli.path)
    before = store_cli.path.read_bytes() if store_cli.path.is_file() else b""
    for arguments, stdin in COMMANDS.values():
        ended = store_cli(*arguments, stdin=stdin)
        assert (ended.code, ended.is_one_line_error) == (2, True), (arguments, ended)
        assert str(store_cli.path) in ended.err
    assert (store_cli.path.read_bytes() if store_cli.path.is_file() else b"") == before


@pytest.mark.parametrize("id", ["", " ", "\t\n"])
@pytest.mark.parametrize("arguments", [arguments for arguments, _ in COMMANDS.values() if "1n" in arguments])
def test_an_empty_id_selects_nothing(store_cli: StoreCli, arguments: list[str], id: str):
    store_cli.add_conversation()
    ended = store_cli(*(id if argument == "1n" else argument for argument in arguments))
    assert (ended.code, ended.is_one_line_error) == (2, True), ended
    assert "empty" in ended.err
    assert len(store_cli("log", "--json").json) == 1


@pytest.mark.parametrize("arguments", [["log", "--before", ""], ["run", "--emulated", "-s", "", "hello"]])
def test_an_empty_id_as_an_option_selects_nothing(store_cli: StoreCli, arguments: list[str]):
    store_cli.add_conversation()
    ended = store_cli(*arguments)
    assert (ended.code, ended.is_one_line_error) == (2, True), ended
    assert "empty" in ended.err

"""The public names: complete, sorted, imported on first use, and typed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import segue
import segue.ids
from scripts import generate_literals

SUBMODULES = "segue._convert, segue._conversation, segue._repair, segue.ids, segue.conversion, segue.wire.registry"
ID_FUNCTIONS = [
    "canonical_tool_id",
    "normalize_to_anthropic_tool_id",
    "normalize_to_history_tool_id",
    "normalize_to_openai_tool_id",
]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def find_type_errors(folder: Path, code: str) -> list[tuple[str, str]]:
    """The rules and messages that basedpyright reports as errors for a file with this code."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    (folder / "example.py").write_text(code, "utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "example.py"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    result = json.loads(ended.stdout)
    assert result["summary"]["filesAnalyzed"] == 1
    found = [entry for entry in result["generalDiagnostics"] if entry["severity"] == "error"]
    assert ended.returncode == bool(found), ended.stderr
    return [(entry["rule"], entry["message"]) for entry in found]


def test_all_names_are_there_and_sorted():
    assert list(segue.__all__) == sorted(segue.__all__)
    assert all(getattr(segue, name) is not None for name in segue.__all__)
    assert set(segue.__all__) == set(dir(segue))


def test_every_name_can_be_imported():
    code = f"from segue import {', '.join(segue.__all__)}; import segue; print(set(segue.__all__) <= set(dir()))"
    assert run(code) == "True"


def test_convert_is_the_function_before_and_after_importing_submodules():
    show = "print(type(segue.convert).__name__, segue.convert.__module__)"
    expected = "function segue._convert"
    assert run(f"import segue; {show}; import {SUBMODULES}; {show}").splitlines() == [expected, expected]
    assert run(f"import {SUBMODULES}; import segue; {show}") == expected


def test_the_version_is_the_installed_one():
    assert segue.__version__ == metadata.version("segue")


def test_ids_has_the_four_id_functions():
    assert segue.ids.__all__ == ID_FUNCTIONS
    assert [getattr(segue.ids, name) for name in ID_FUNCTIONS] == [getattr(segue, name) for name in ID_FUNCTIONS]
    assert all(callable(getattr(segue.ids, name)) for name in ID_FUNCTIONS)


def test_literals_are_current():
    assert generate_literals.FILE == Path(segue.__file__).parent / "_literals.py"
    assert generate_literals.FILE.read_text("utf-8") == generate_literals.literals(), "run `make docs`"


def test_a_type_checker_rejects_a_misspelled_target(tmp_path: Path):
    code = 'import segue\n\nsegue.convert({{}}, target="{}")\n'
    ((rule, message),) = find_type_errors(tmp_path, code.format("antropic"))
    assert rule == "reportArgumentType"
    assert "antropic" in message
    assert find_type_errors(tmp_path, code.format("anthropic")) == []


def test_importing_segue_loads_nothing_heavier_than_msgspec():
    code = "import segue, sys; print(sorted(m for m in sys.modules if m.split('.')[0] in ('click', 'json')))"
    assert run(code) == "[]"
    assert run("import segue, sys; print('segue.wire' in sys.modules)") == "False"


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(segue, "nonsense")

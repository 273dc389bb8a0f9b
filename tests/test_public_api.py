"""The public names: all there, sorted, loaded late, and the function `convert` stays a function."""

from __future__ import annotations

import subprocess
import sys

import segue


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_all_names_are_there_and_sorted():
    assert list(segue.__all__) == sorted(segue.__all__)
    assert all(getattr(segue, name) is not None for name in segue.__all__)
    assert set(segue.__all__) <= set(dir(segue))


def test_convert_is_the_function_whatever_was_imported_first():
    first = "import segue._convert, segue._conversation, segue"
    assert run(f"{first}; print(callable(segue.convert), segue.convert.__module__)") == "True segue.convert"


def test_importing_segue_loads_nothing_heavier_than_msgspec():
    code = "import segue, sys; print(sorted(m for m in sys.modules if m.split('.')[0] in ('rich', 'click', 'json')))"
    assert run(code) == "[]"
    assert run("import segue, sys; print('segue.wire' in sys.modules)") == "False"


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(segue, "nonsense")

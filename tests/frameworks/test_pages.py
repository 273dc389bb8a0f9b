"""The page about frameworks: its code compiles, and the section of a framework that is installed here runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulated import emulate_providers
from tests.frameworks.pages import read_sections, run_section

SECTIONS = read_sections()


@pytest.mark.parametrize("title", SECTIONS)
def test_section_compiles(title: str) -> None:
    blocks = [code for language, code in SECTIONS[title] if language == "python"]
    assert blocks
    for code in blocks:
        compile(code, title, "exec")


def test_section_about_agents_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with emulate_providers() as variables:
        for name, value in {**variables, "XDG_STATE_HOME": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        assert run_section(SECTIONS["OpenAI Agents"], tmp_path) is None
        wrong = [("python", "print(1)"), ("text", "2")]
        assert run_section(wrong, tmp_path) == "expected '2', printed '1\\n'"

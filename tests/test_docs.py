"""The pages are run: every Python block of README and guide, in one namespace a page, and what it prints."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from scripts import generate_docs

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md", "docs/tools.md"])
def test_the_examples_run(page: str):
    namespace: dict[str, object] = {}
    printed = ""
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks
    for language, code in blocks:
        if language == "text":
            assert printed == code
            continue
        output = StringIO()
        with redirect_stdout(output):
            exec(compile(code, page, "exec"), namespace)
        printed = output.getvalue()


@pytest.mark.parametrize("page", generate_docs.PAGES)
def test_generated_pages_are_current(page: str):
    assert (ROOT / "docs" / page).read_text("utf-8") == generate_docs.PAGES[page](), "run `make docs`"


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_guide_lists_every_fault_field_and_base_url():
    from segue.emulator import Recorded
    from segue.emulator.faults import FAULTS
    from segue.emulator.providers import PROVIDERS

    page = (ROOT / "docs/guide.md").read_text()
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert {*FAULTS, *Recorded.__struct_fields__, "accepted"} <= listed
    (base,) = re.findall(r"- \*\*Base URL\*\*.*?(?=\n- )", page, re.DOTALL)
    parts = re.findall(r"`(/[\w/-]+)` for ([^/]+?)(?=, `/|, and nothing)", " ".join(base.split()))
    named = {api: path for path, apis in parts for api in re.findall(r"`([\w-]+)`", apis)}
    assert named == {api: provider.base_path for api, provider in PROVIDERS.items() if provider.base_path}

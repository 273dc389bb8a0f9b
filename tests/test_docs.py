"""The pages are run. Python blocks: in one namespace a page; a `text` block after one is its output.

`console` blocks: `$ segue …` is run in the page's folder and compared with the lines below it; a command without `$`
needs a key or a network, so only its name and options are checked.
"""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
import typing
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import click
import pytest

from scripts import generate_docs
from segue.cli.app import root
from tests.cli.process import environment
from tests.emulated import emulate_providers

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.name for page in (ROOT / "docs").glob("*.md"))
WRITTEN = ["README.md", *(f"docs/{page}" for page in PAGES if page not in generate_docs.PAGES)]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAX_LINES = 250
# Frameworks have environments of their own: `make frameworks` runs the page.
RUN_ELSEWHERE = "docs/use-it-from-frameworks.md"
EXECUTED = [page for page in WRITTEN if BLOCK.search((ROOT / page).read_text()) and page != RUN_ELSEWHERE]


@pytest.fixture
def providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Emulators in the place of the real providers, and a home for files that segue makes."""
    with emulate_providers() as variables:
        for name, value in {**variables, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.parametrize("page", EXECUTED)
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.chdir(tmp_path)
    # The examples of the README run as pasted, without a key.
    if "segue.transport" in (ROOT / page).read_text() and page != "README.md":
        request.getfixturevalue("providers")
    namespace: dict[str, object] = {"__name__": page}
    printed = ""
    for language, code in BLOCK.findall((ROOT / page).read_text()):
        if language == "text":
            assert printed == code
        elif language == "python":
            output = StringIO()
            with redirect_stdout(output):
                exec(compile(code, page, "exec"), namespace)
            printed = output.getvalue()
        elif page != "README.md":
            run_console(code, tmp_path)


def run_console(block: str, folder: Path) -> None:
    """Runs each `$ command` of a block in bash and compares its stdout and stderr."""
    for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = entry.partition("\n")
        script = f'segue() {{ {shlex.quote(sys.executable)} -m segue "$@"; }}\n{command}'
        variables = {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=100,
            check=False,
        )
        assert ended.stdout.decode() == expected, command


@pytest.mark.parametrize("page", WRITTEN)
def test_commands_and_options_exist(page: str):
    text = (ROOT / page).read_text()
    blocks = [code for language, code in BLOCK.findall(text) if language == "console"]
    lines = [line for code in blocks for line in code.splitlines()]
    lines += re.findall(r"`(segue [a-z][^`]*)`", text.replace("\n", " "))
    for line in lines:
        for command in re.findall(r"(?<![\w./'\"-])segue ((?:[^|&;#()]|\([^)]*\))+)", line):
            check_command(command.split())


def check_command(words: list[str]) -> None:
    """Fails for an unknown sub-command or option. Values of options and other arguments are not checked."""
    command: click.Command = root
    context = click.Context(root, info_name="segue", **root.context_settings)
    for word in itertools.takewhile(lambda word: word != "--", words):
        if word.startswith("-") and word != "-":
            known = {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}
            assert word.partition("=")[0] in {*known, "-h", "--help"}, f"{command.name} has no option {word}"
        elif isinstance(command, click.Group) and re.fullmatch("[a-z]+", word):
            found = command.get_command(context, word)
            assert found is not None, f"no such command: {word}"
            command, context = found, click.Context(found, context, info_name=word)


@pytest.mark.parametrize("page", [page for page in WRITTEN if page != "README.md"])
def test_pages_are_short(page: str):
    assert len((ROOT / page).read_text().splitlines()) <= MAX_LINES


def test_index_lists_every_page():
    index = (ROOT / "docs/README.md").read_text()
    pages = [file.relative_to(ROOT / "docs") for file in (ROOT / "docs").rglob("*.md") if file.name != "README.md"]
    examples = [f"../examples/{file.name}" for file in (ROOT / "examples").glob("*.py")]
    assert [str(page) for page in [*pages, *examples] if f"({page})" not in index] == []


@pytest.mark.parametrize("page", generate_docs.PAGES)
def test_generated_pages_are_current(page: str):
    assert (ROOT / "docs" / page).read_text("utf-8") == generate_docs.PAGES[page](), "run `make docs`"


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target, heading in re.findall(r"\]\(([^)#:\s]*)(#[^)]+)?\)", page.read_text()):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name} links to {target}"
            if heading:
                assert heading[1:] in heading_anchors(linked), f"{page.name} links to {target}{heading}"


def heading_anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_emulator_page_lists_every_fault_field_and_base_url():
    from segue.emulator import RecordedRequest
    from segue.emulator.faults import FAULTS
    from segue.emulator.providers import PROVIDERS

    page = (ROOT / "docs/testing.md").read_text()
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert {*FAULTS, *RecordedRequest.__struct_fields__, "accepted"} <= listed
    (base,) = re.findall(r"- \*\*Base URL\*\*.*?(?=\n- )", page, re.DOTALL)
    parts = re.findall(r"`(/[\w/-]+)` for ([^/]+?)(?=, `/|, and no path)", " ".join(base.split()))
    named = {api: path for path, apis in parts for api in re.findall(r"`([\w-]+)`", apis)}
    assert named == {api: path for api, provider in PROVIDERS.items() if (path := provider(0).base_path)}


def test_how_it_works_lists_every_finding_kind():
    from segue.render.report import FindingKind

    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/how-it-works.md").read_text(), re.MULTILINE)
    assert [row for row in rows if row in typing.get_args(FindingKind)] == list(typing.get_args(FindingKind))


def test_tool_calls_page_lists_every_text_format():
    from segue.wire.text.registry import FORMATS

    rows = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs/tool-calls.md").read_text(), re.MULTILINE)
    assert rows == [text_format.name for text_format in FORMATS]


def test_permissions_page_lists_every_tool():
    from segue.runtime.tools import standard_names

    table = (ROOT / "docs/permissions.md").read_text().partition("## Rules")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(standard_names())


def test_configuration_page_lists_every_provider():
    from segue.bridge.providers import catalogue

    rows = re.findall(
        r"^\| (`.+?) \| (.+?) \| (.+?) \| (.+?) \|$", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE
    )
    listed = [[re.findall(r"`([\w-]+)`", cell) for cell in row] for row in rows]
    expected = [
        [
            [provider.name, *provider.aliases],
            [provider.api, *([provider.profile] if provider.profile else [])],
            re.findall("[A-Z_]{2,}", " ".join(provider.variables)),
            list(provider.url_variables),
        ]
        for provider in catalogue().values()
    ]
    assert listed == expected


@pytest.mark.parametrize("page", WRITTEN)
def test_configuration_examples_are_valid(page: str):
    from segue.cli.settings import TableReader, parse
    from segue.gateway.settings import GatewaySettings

    for block in re.findall(r"^```toml\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        TableReader(page).read(parse(Path(page), block.encode()).gateway, GatewaySettings, "gateway")

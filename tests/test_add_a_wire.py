"""A new vendor is four files, a server profile two; nothing else has to change. Also the page that lists the files.

The package is copied to a temporary folder, the files of `tests/vendor_acme` are added, and commands run on the copy.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import segue
from tests.cli.process import ProcessResult, environment

PACKAGE = Path(segue.__file__).parent
TESTS = Path(__file__).parent
ROOT = TESTS.parent
VENDOR_FILES = ("wire/dialects/acme.py", "conformance/acme.py", "emulator/errors/acme.py", "specs/providers.toml")
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "toolu_01", "type": "function", "function": {"name": "read", "arguments": "{}"}}
QUESTION = [{"role": "user", "content": "hi"}]
UNANSWERED = {
    "model": "acme-1",
    "tools": TOOLS,
    "messages": [*QUESTION, {"role": "assistant", "content": None, "tool_calls": [CALL]}, *QUESTION],
}


class Copy:
    """A copy of the package with files added, and its command."""

    def __init__(self, folder: Path, *added: str) -> None:
        self.folder = folder
        self.package = folder / "src" / "segue"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in added:
            self.add(TESTS / name)

    def add(self, tree: Path) -> None:
        for file in tree.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                place = self.package / file.relative_to(tree)
                assert place.suffix == ".toml" or not place.exists()
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("a", encoding="utf-8") as out:
                    out.write(file.read_text("utf-8"))

    def environment(self, **variables: str) -> dict[str, str]:
        home = {"HOME": str(self.folder), "SEGUE_STORE": str(self.folder / "store.db")}
        return environment(PYTHONPATH=str(self.package.parent), **home, **variables)

    def insert(self, name: str, before: str, text: str) -> None:
        file = self.package / name
        old = file.read_text("utf-8")
        assert old.count(before) == 1, before
        file.write_text(old.replace(before, text + before), "utf-8")

    def python(self, *arguments: str, stdin: object = None, **variables: str) -> ProcessResult:
        ended = subprocess.run(
            [sys.executable, *arguments],
            input=json.dumps(stdin).encode() if stdin is not None else b"",
            capture_output=True,
            cwd=self.folder,
            env=self.environment(**variables),
            timeout=100,
            check=False,
        )
        return ProcessResult(ended.returncode, ended.stdout, ended.stderr.decode())

    def run(self, *arguments: str, stdin: object = None, **variables: str) -> ProcessResult:
        return self.python("-m", "segue", *arguments, stdin=stdin, **variables)

    @contextmanager
    def emulate(self, *arguments: str) -> Generator[dict[str, str]]:
        """Runs `segue emulate` on any free port; its first line has the URLs."""
        process = subprocess.Popen(
            [sys.executable, "-m", "segue", "emulate", *arguments, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment(),
        )
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate(timeout=100)


def post(url: str, body: object, **headers: str) -> tuple[int, dict]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
    try:
        connection.request("POST", parts.path, json.dumps(body), {"content-type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("acme"), "vendor_acme", "server_acme")


def test_a_vendor_is_exactly_four_files() -> None:
    files = [file for file in (TESTS / "vendor_acme").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert {str(file.relative_to(TESTS / "vendor_acme")) for file in files} == set(VENDOR_FILES)


def test_formats_and_detect_list_it(acme: Copy) -> None:
    assert [row["name"] for row in acme.run("apis", "--json").json if row["on"] == "openai-chat"][-1] == "acme"
    script = "import segue; found = segue.detect('acme-1'); print(segue.__file__, found.target, found.tool_format)"
    assert acme.python("-c", script).out.decode().split() == [str(acme.package / "__init__.py"), "acme", "openai"]
    assert ["acme-box", "openai-chat"] in [line.split() for line in acme.run("apis", "--profiles").lines]


@pytest.mark.parametrize("target", ["acme", "acme-corp"])
def test_convert(acme: Copy, target: str) -> None:
    source = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_01", "name": "read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "text"}]},
        ],
    }
    ended = acme.run("convert", "--from", "anthropic", "--to", target, stdin=source)
    assert ended.code == 0, ended.err
    call, result = ended.json["messages"][1:]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    assert result["tool_call_id"].startswith("acme_")


def test_check(acme: Copy) -> None:
    ended = acme.run("check", "--api", "acme", stdin=UNANSWERED)
    assert ended.code == 1, ended.err
    assert ended.lines[0].startswith("reject OAI-CHAT-03")


def test_emulate_and_run(acme: Copy) -> None:
    with acme.emulate("acme") as urls:
        assert urls["base_url"] == f"{urls['url']}/api/v2"
        url = f"{urls['base_url']}/chat/completions"
        status, body = post(url, {"model": "acme-1", "messages": QUESTION}, **{"x-acme-key": "k"})
        assert (status, body["choices"][0]["message"]["role"]) == (200, "assistant")
        status, body = post(url, UNANSWERED, **{"x-acme-key": "k"})
        assert (status, body["error"]["message"]) == (400, "acme: a tool call has no result")
        assert post(url, {"model": "acme-1", "messages": QUESTION})[0] == 401
        variables = {"ACME_BASE_URL": urls["base_url"], "ACME_API_KEY": "secret"}
        for model in ("acme/acme-1", "acme-1"):
            ended = acme.run("run", "-m", model, "Say hello.", **variables)
            assert ended.code == 0, ended.err
            assert ended.out.strip()


def test_a_server_profile(acme: Copy) -> None:
    body = {"messages": QUESTION, "reasoning_effort": "low", "tools": TOOLS}
    for arguments in (["--api", "openai-chat", "--profile", "acme-box"], ["--api", "acme-box"]):
        assert acme.run("check", *arguments, "--model", "gpt-5.6-terra", stdin=body).lines == ["accepted"]
    broken = {
        "messages": [
            *QUESTION,
            {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "read", "arguments": "{"}}]},
        ]
    }
    for arguments in (["--to", "openai-chat", "--profile", "acme-box"], ["--to", "acme-box"]):
        ended = acme.run("convert", "--from", "openai-chat", *arguments, stdin=broken)
        assert ended.code == 0, ended.err
        assert json.loads(ended.json["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"_raw": "{"}
    with acme.emulate("acme-box") as urls:
        assert post(f"{urls['base_url']}/chat/completions", UNANSWERED, authorization="Bearer k")[0] == 400


@pytest.mark.parametrize(
    ("missing", "module"),
    [("conformance/acme.py", "segue._check"), ("emulator/errors/acme.py", "segue.emulator.server")],
)
def test_a_missing_file_is_named(tmp_path: Path, missing: str, module: str) -> None:
    copy = Copy(tmp_path, "vendor_acme")
    (copy.package / missing).unlink()
    ended = copy.python("-c", f"import {module}")
    assert ended.code == 1
    assert f"ImportError: segue/{missing} is missing" in ended.err
    (copy.package / "wire/dialects/acme.py").write_text("NAME = 1\n")
    assert "ImportError: segue.wire.dialects.acme has no constant WIRE" in copy.python("-c", f"import {module}").err


CONSTRAINT = '''    text_limit: int | None = None
    """The most characters of a text."""
'''
PASS = '''def shorten_texts(draft: Draft) -> Draft:
    """Shorten texts that are too long."""
    limit = draft.constraints.text_limit
    messages = list(draft.messages)
    for place, message in enumerate(messages):
        texts = [block for block in message.blocks if isinstance(block, Text)]
        if limit is not None and any(len(text.text) > limit for text in texts):
            blocks = tuple(Text(block.text[:limit]) if isinstance(block, Text) else block for block in message.blocks)
            messages[place] = message.with_blocks(blocks)
            draft.report.add("adjusted", "text shortened", level="changed")
    return draft.with_messages(messages)


'''
GROWING = """
import json, segue
from segue.conversion import sessions

given, continued = [{"role": "user", "content": "A long question."}], 0
for number in range(6):
    body = {"model": "gpt-5", "messages": given}
    converted = segue.convert(json.dumps(body).encode(), source="openai-chat", target="acme")
    whole = segue.convert(body, source="openai-chat", target="acme")
    # The conversation and its settings: a body that is converted whole would be another entry.
    continued += number > 1 and len(sessions.conversations) == 2
    assert (converted.data, converted.report.to_dict()) == (whole.data, whole.report.to_dict()), number
    given += [{"role": "assistant", "content": f"Reply {number}."}, {"role": "user", "content": f"Question {number}."}]
texts = [message["content"] for message in converted.body["messages"]]
print(json.dumps([continued, texts, [finding.message for finding in converted.report.findings]]))
"""


def test_a_constraint_with_a_pass_is_two_files(tmp_path: Path) -> None:
    """Bodies that continue a conversation obey it too."""
    copy = Copy(tmp_path, "vendor_acme")
    constraints, passes, dialect = "render/constraints.py", "render/passes.py", "wire/dialects/acme.py"
    copy.insert(constraints, "    results_adjacent: bool = True", CONSTRAINT)
    copy.insert(passes, "PASSES: tuple", PASS)
    copy.insert(passes, "    drop_empty,\n    group_results,", "    shorten_texts,\n")
    copy.insert(passes, "    drop_empty: _traits", "    shorten_texts: _traits(Text),\n")
    copy.insert(passes, "ToolCall, ToolResponse, calls_of", "Text, ")
    copy.insert(dialect, 'later_system="text"', "text_limit=6, ")
    ended = copy.python("-c", GROWING)
    assert ended.code == 0, ended.err
    continued, texts, findings = ended.json
    assert texts == ["A long", *["Reply ", "Questi"] * 5]
    assert "text shortened" in findings
    assert continued > 2


def test_every_path_on_the_page_exists() -> None:
    page = (ROOT / "docs" / "add-a-wire.md").read_text("utf-8")
    assert len(page.splitlines()) < 250
    named = re.findall(r"`([\w./-]+(?:\.(?:py|toml|md|json)|/))`", page)
    paths = [path for path in named if not path.endswith("/acme.py")]
    assert len(paths) > 60
    # The files of a wire are listed without its folder.
    bases = (ROOT, PACKAGE, PACKAGE / "wire", PACKAGE / "wire" / "anthropic")
    missing = [path for path in paths if not any((base / path).exists() for base in bases)]
    assert not missing


def test_links_of_the_page() -> None:
    page = (ROOT / "docs" / "add-a-wire.md").read_text("utf-8")
    assert all((ROOT / "docs" / link).exists() for link in re.findall(r"\]\(([^)#:]+)\)", page))

"""`segue keys client`: the keys of a gateway's clients, and the file that has their hashes."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest

from tests.cli.process import is_one_line_error
from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def key_file(project: Project) -> Path:
    return project.home / ".config/segue/client-keys.json"


def test_add_list_and_revoke(project: Project) -> None:
    assert project.run("keys", "client", "list", "--json").json == []
    key = project.run("keys", "client", "add", "ada").lines[0]
    assert key.startswith("segue-")
    limits = ["--requests", "60", "--tokens", "9000", "--concurrent", "2", "--model", "claude-*", "--model", "x"]
    scrape = project.run("keys", "client", "add", "prometheus", "--metrics", "--model", "none").lines[0]
    assert project.run("keys", "client", "list").lines[-1] == "prometheus: metrics, models none"
    assert scrape not in key_file(project).read_text()
    assert project.run("keys", "client", "revoke", "prometheus").code == 0
    other = project.run("keys", "client", "add", "bob", *limits, "--days", "7", "--json").json
    assert other["name"] == "bob"
    assert other["key"] not in ("", key)
    ada, bob = project.run("keys", "client", "list").lines
    assert ada == "ada"
    assert bob.startswith("bob: 60 requests a minute, 9,000 tokens a minute, 2 at once, expires 20")
    assert bob.endswith(" UTC, models claude-* x")
    rows = project.run("keys", "client", "list", "--json").json
    assert [row["metrics"] for row in rows] == [False, False]
    assert all("hash" not in row for row in rows)
    assert 6 * 86_400 < rows[1]["expires"] - time.time() < 8 * 86_400
    text = key_file(project).read_text()
    assert key not in text
    assert other["key"] not in text
    assert stat.S_IMODE(key_file(project).stat().st_mode) == 0o600
    revoked = project.run("keys", "client", "revoke", "ada")
    assert (revoked.code, revoked.out) == (0, b"")
    assert [row["name"] for row in project.run("keys", "client", "list", "--json").json] == ["bob"]
    assert [path.name for path in key_file(project).parent.iterdir()] == ["client-keys.json"]


def test_mistakes_are_one_line(project: Project) -> None:
    assert project.run("keys", "client", "add", "ada").code == 0
    assert is_one_line_error(project.run("keys", "client", "add", "ada"))
    assert is_one_line_error(project.run("keys", "client", "revoke", "bob"))
    assert is_one_line_error(project.run("keys", "client", "add", "bob", "--requests", "0"))
    assert is_one_line_error(project.run("keys", "client", "add", ""))
    assert is_one_line_error(project.run("keys", "client", "add", "two\nlines"))
    assert len(project.run("keys", "client", "list").lines) == 1


def test_limits_of_a_key_are_replaced_and_the_key_stays(project: Project):
    project.run("keys", "client", "add", "ada", "--requests", "5", "--days", "7")
    [before] = json.loads(key_file(project).read_bytes())
    assert project.run("keys", "client", "limit", "ada", "--budget", "80/month").err == "segue: ada: $80.00 a month\n"
    [after] = json.loads(key_file(project).read_bytes())
    assert after["hash"] == before["hash"]
    assert project.run("keys", "client", "list").lines == ["ada: $80.00 a month"]
    assert is_one_line_error(project.run("keys", "client", "limit", "bob", "--requests", "5"))
    assert is_one_line_error(project.run("keys", "client", "limit", "ada", "--budget", "5/fortnight"))
    assert project.run("keys", "client", "list").lines == ["ada: $80.00 a month"]


HASH = "0" * 64


def write_key_file(project: Project, content: str) -> None:
    key_file(project).parent.mkdir(parents=True)
    key_file(project).touch(0o600)
    key_file(project).write_text(content)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "{}",
        "[5]",
        '[{"name": "a"}]',
        json.dumps([{"name": "a", "hash": "short"}]),
        json.dumps([{"name": "a", "hash": "ä" * 64}]),
        json.dumps([{"name": "a", "hash": HASH, "modles": []}]),
        json.dumps([{"name": "a", "hash": HASH, "requests_per_minute": -1}]),
        json.dumps([{"name": "a\nb", "hash": HASH}]),
        json.dumps([{"name": "a", "hash": HASH}, {"name": "a", "hash": "1" * 64}]),
    ],
)
def test_a_damaged_file_is_reported_and_kept(project: Project, content: str) -> None:
    write_key_file(project, content)
    for arguments in (["keys", "client", "list"], ["keys", "client", "add", "b"], ["serve", "--emulated"]):
        ended = project.run(*arguments)
        assert is_one_line_error(ended), ended
        assert "client-keys.json is damaged" in ended.err
    assert key_file(project).read_text() == content


def test_an_expired_key_is_listed_as_such(project: Project) -> None:
    write_key_file(project, json.dumps([{"name": "old", "hash": HASH, "expires": 0}]))
    assert project.run("keys", "client", "list").lines == ["old: expired 1970-01-01 00:00 UTC"]

"""The start of an agent does each thing once, and an exchange writes only what changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segue.cli import app
from segue.store.events import SettingsChanged, Switched
from segue.store.sqlite import SqliteStore
from tests.cli.project import Project

PROMPT = ("run", "--emulated", "Read notes.txt")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path)
    monkeypatch.chdir(project.folder)
    return project


@pytest.fixture
def counts(project: Project, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the agent of this process loads, compiles or writes something."""
    counter: Counter[str] = Counter()

    def count(place: str, label: Callable[..., str]) -> None:
        module, _, name = place.rpartition(".")
        function: Any = getattr(__import__(module, fromlist=[name]), name)

        def counted(*arguments: Any, **named: Any) -> Any:
            counter[label(*arguments)] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(place, counted)

    (project.folder / "notes.txt").write_text("Buy milk.")
    (project.folder / "AGENTS.md").write_text("Be brief.")
    project.write_config('[tools]\ndeny = ["fetch_url"]\n')
    project.write_user_config('compress = "dense"\n')
    for name, value in project.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", None)
    assert app.run(list(PROMPT)) == 0
    count("segue.cli.config.read", lambda file: f"read {file.name}")
    count("segue.cli.project_context.take", lambda *_: "context")
    count("segue.runtime.toolbox.find_schema_error", lambda schema: f"schema {id(schema)}")
    count("segue.store.sqlite.transaction", lambda *_: "transactions")
    return counter


def test_start_loads_everything_once(counts: Counter[str]):
    assert app.run(list(PROMPT)) == 0
    transactions = counts.pop("transactions")
    assert {"read .segue.toml", "read config.toml", "context"} <= counts.keys()
    assert sum(label.startswith("schema ") for label in counts) > 5
    assert set(counts.values()) == {1}
    # Created with settings and model, the prompt, two requests with their replies, one result, the end.
    assert transactions <= 8


def test_settings_and_model_are_written_once(project: Project, counts: Counter[str]):
    assert app.run(list(PROMPT)) == 0
    assert app.run(["run", "--emulated", "-c", "Read notes.txt"]) == 0
    with SqliteStore(project.store) as store:
        events = [record.event for record in store.events(store.list()[0].id)]
    for kind in (SettingsChanged, Switched):
        assert sum(isinstance(event, kind) for event in events) == 1

"""Acme: its folder, its sessions, how it is resumed, and how it is started on a gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from segue.errors import InputError
from segue.sessions.any_provider import AnyProviderClient
from segue.sessions.client import ClientHome, NewSession, SessionFile
from segue.sessions.launch import Launch, LaunchContext, Program
from segue.sessions.lines import read_excerpt

from . import reader
from .writer import AcmeWriter


class Acme(AnyProviderClient, Program):
    name = "acme"
    kind = reader.KIND
    title = "Acme"
    program = "acme"
    resume_arguments = ("resume",)
    package = "@acme/cli"
    reader = reader
    writer = AcmeWriter
    tested_versions = (AcmeWriter.version,)

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        for path in _root(home).glob("*.jsonl"):
            session = self.describe(path)
            if cwd is None or home.is_same_folder(session.cwd, str(cwd)):
                yield session

    def describe(self, path: Path) -> SessionFile:
        excerpt = read_excerpt(path)
        if excerpt is None or not excerpt.values or not reader.is_head(excerpt.values[0]):
            raise InputError("not a session of Acme", path=str(path))
        head = excerpt.values[0]
        return SessionFile("acme", head["id"], path, head["cwd"], excerpt.updated, excerpt.size, head.get("title"))

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        return _root(home) / f"{draft.id}.jsonl"

    def launch(self, context: LaunchContext) -> Launch:
        return Launch(("--url", context.url), {"ACME_KEY": context.key})


def _root(home: ClientHome) -> Path:
    return home.folder("ACME_HOME", ".acme")

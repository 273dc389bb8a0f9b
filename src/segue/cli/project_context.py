"""The context of a conversation: working folder, date, platform, git state, and the project's instruction files.

It is taken once when a conversation starts and is part of its system text, so that the beginning of the prompt does
not change. What changes later is sent with the next user message. Files may come from someone else: only those in
trusted folders are read, and only there git is run, without the settings of the repository.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from segue.canonical.blocks import Message, Text
from segue.cli import trust_store
from segue.runtime.git_repository import Repository, find_root, open_repository, run_git

_NAMES = ("AGENTS.md", "CLAUDE.md")
MAX_SIZE = 32_000
"""The most bytes of all instruction files together."""
_HEADING = "# Environment"
_FILE_HEADING = "# Instructions from "
_CHANGED = "[The context of this conversation has changed:]"
_REMOVED = "These instructions no longer apply."
_CUT = "[the rest of the file is left out]"
_MAX_CHANGED_FILES = 20
_COMMITS = 3


@dataclass(frozen=True)
class InstructionFile:
    """An instruction file. `text` is empty if its folder is not trusted; `is_cut` if it is longer than what is used."""

    path: Path
    text: str
    is_trusted: bool
    is_cut: bool = False


@dataclass(frozen=True)
class ProjectContext:
    """The context at one time. Changes of `facts` and `files` are sent later, those of `git_state` are not."""

    facts: dict[str, str]
    git_state: str
    files: tuple[InstructionFile, ...]

    @property
    def text(self) -> str:
        """The context as part of a system text."""
        lines = [_HEADING, *(f"{name}: {value}" for name, value in self.facts.items())]
        parts = ["\n".join([*lines, self.git_state] if self.git_state else lines)]
        return "\n\n".join([*parts, *self._sections.values()])

    @property
    def _sections(self) -> dict[str, str]:
        """The sections of the files that are used, by their headings."""
        used = (file for file in self.files if file.text)
        return {
            f"{_FILE_HEADING}{file.path}": "\n".join(f"{_FILE_HEADING}{file.path}\n{file.text}".splitlines())
            for file in used
        }

    def changes_since(self, system: str | None, messages: Sequence[Message]) -> str | None:
        """Return a text for the next user message with all changes since the last such text; None without changes.

        `system` and `messages` are those of the conversation. The result is None if the system text has no context.
        """
        if system is None or _HEADING not in system.splitlines():
            return None
        texts = [*_iter_changes(messages), system]
        parts = [
            f"{name}: {value}"
            for name, value in self.facts.items()
            if f"{name}: {value}" not in _newest_with(texts, f"{name}: ").splitlines()
        ]
        sections = self._sections
        for heading in dict.fromkeys(line for text in texts for line in text.splitlines() if _is_heading(line)):
            sections.setdefault(heading, f"{heading}\n{_REMOVED}")
        parts += [
            section
            for heading, section in sections.items()
            if section != _find_section(_newest_with(texts, heading), heading)
        ]
        return "\n\n".join([_CHANGED, *parts]) if parts else None


def is_context_note(text: str) -> bool:
    """Return whether a text in a user message was made by `changes_since`."""
    return text.startswith(_CHANGED)


def _is_heading(line: str) -> bool:
    return line.startswith(_FILE_HEADING)


def _iter_changes(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts of changes, newest first."""
    for message in reversed(messages):
        for block in message.blocks if message.speaker == "human" else ():
            if isinstance(block, Text) and is_context_note(block.text):
                yield block.text


def _find_section(text: str, heading: str) -> str:
    """Return a section of a text with its heading, up to the next heading."""
    lines = text.splitlines()
    if heading not in lines:
        return ""
    start = lines.index(heading)
    end = next((at for at in range(start + 1, len(lines)) if _is_heading(lines[at])), len(lines))
    return "\n".join(lines[start:end]).strip()


def _newest_with(texts: Iterable[str], start: str) -> str:
    """Return the first text with a line that begins with `start`; empty if there is none."""
    return next((text for text in texts if any(line.startswith(start) for line in text.splitlines())), "")


# --------------------------------------------------------------------------------------------------------------- taking


def take(folder: Path, *, trusting: bool = False, git_state: bool = True) -> ProjectContext:
    """Take the context of a folder. `trusting` trusts the folder and those above it for this run.

    Without `git_state`, git is not run.
    """
    runs_git = git_state and (trusting or trust_store.is_trusted_folder(folder))
    facts = {
        "Working folder": str(folder),
        "Date": date.today().isoformat(),
        "Platform": f"{platform.system()} {platform.machine()}",
    }
    root = find_root(folder)
    repository = open_repository(root) if root is not None else None
    if repository is not None and (branch := repository.branch):
        facts["Git branch"] = branch
    state = _read_git_state(repository) if repository is not None and runs_git else ""
    return ProjectContext(facts, state, _read_files(folder, trusting=trusting))


def find_files(folder: Path) -> list[Path]:
    """Return the instruction files of a folder and those above it, the nearest first; one of each folder."""
    found: list[Path] = []
    for each in (folder, *folder.parents):
        file = next((each / name for name in _NAMES if (each / name).is_file()), None)
        found += [file] if file is not None else []
    return found


def _read_files(folder: Path, *, trusting: bool) -> tuple[InstructionFile, ...]:
    """Read the files, at most `MAX_SIZE` bytes, from the nearest folder up; return the nearest last."""
    left = MAX_SIZE
    files: list[InstructionFile] = []
    for path in find_files(folder):
        real = Path(os.path.realpath(path))
        # The target folder of a link must be trusted too.
        is_trusted = trusting or all(map(trust_store.is_trusted_folder, {path.parent, real.parent}))
        if not is_trusted:
            files.append(InstructionFile(path, "", is_trusted=False))
            continue
        try:
            with real.open("rb") as stream:
                data = stream.read(left + 1)
        except OSError:
            continue
        text = data[:left].decode("utf-8", "replace").strip()
        is_cut = len(data) > left
        files.append(InstructionFile(path, f"{text}\n{_CUT}" if is_cut else text, is_trusted=True, is_cut=is_cut))
        left = max(0, left - len(data))
    return tuple(reversed(files))


def _read_git_state(repository: Repository) -> str:
    """Return changed files and the newest commits; empty if git does not answer."""
    # In a submodule git would run with the settings of the submodule.
    status = run_git(repository, "status", "--porcelain", "--ignore-submodules=all")
    commits = run_git(repository, "log", f"-{_COMMITS}", "--format=%h %s")
    if status is None:
        return ""
    changed = status.splitlines()
    more = f", and {len(changed) - _MAX_CHANGED_FILES} more" if len(changed) > _MAX_CHANGED_FILES else ""
    shown = ", ".join(line.strip() for line in changed[:_MAX_CHANGED_FILES])
    lines = [f"Changed files at the start: {shown}{more}" if changed else "Changed files at the start: none"]
    if commits:
        lines += ["Newest commits:", *(f"- {line}" for line in commits.splitlines())]
    return "\n".join(lines)

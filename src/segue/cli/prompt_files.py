"""Prompts in Markdown files: templates of `segue run -t NAME`, and slash commands of the chat.

A file `NAME.md` in `commands/` of the configuration folder or in `.segue/commands/` of the project is a prompt; the
project's files take precedence. `$ARGUMENTS` stands for all words after the name, `$1` to `$9` for single ones. Without
any of these, the words are appended. A front matter may have a `description`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from msgspec import Struct

from segue.cli.streams import BadInputError, format_os_error

_PROJECT_FOLDER = Path(".segue") / "commands"
_MAX_BYTES = 256 << 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n?", re.DOTALL)
_DESCRIPTION = re.compile(r"description:\s*(.+)")
_PLACEHOLDER = re.compile(r"\$(ARGUMENTS|[1-9])")


class PromptFile(Struct, frozen=True):
    """A prompt with placeholders."""

    name: str
    path: Path
    text: str
    description: str = ""

    def fill(self, arguments: str) -> str:
        """Replace the placeholders by the arguments; without placeholders, append them."""
        if not _PLACEHOLDER.search(self.text):
            return f"{self.text}\n\n{arguments}" if arguments else self.text
        values = _split_arguments(arguments)

        def replace(match: re.Match[str]) -> str:
            if match[1] == "ARGUMENTS":
                return arguments
            at = int(match[1]) - 1
            return values[at] if at < len(values) else ""

        return _PLACEHOLDER.sub(replace, self.text)


def _split_arguments(arguments: str) -> list[str]:
    """Split at blanks outside quotes; without closing quotes, at all blanks."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def list_prompt_files(folder: Path) -> dict[str, PromptFile]:
    """Return the prompts by name. Files that can't be read are left out."""
    found: dict[str, PromptFile] = {}
    for place in (Path(click.get_app_dir("segue")) / "commands", folder / _PROJECT_FOLDER):
        try:
            files = sorted(place.glob("*.md"))
        except OSError:
            continue
        for file in files:
            if _NAME.fullmatch(file.stem.lower()):
                try:
                    found[file.stem.lower()] = read_prompt_file(file)
                except BadInputError:
                    continue
    return found


def find_prompt_file(name: str, folder: Path) -> PromptFile:
    """Return the prompt with this name, or the file with this path."""
    if name.endswith(".md"):
        return read_prompt_file(folder / name)
    known = list_prompt_files(folder)
    if name.lower() not in known:
        names = ", ".join(known) or f"none; write {_PROJECT_FOLDER}/{name}.md"
        raise BadInputError(f"unknown template '{name}'; known templates: {names}")
    return known[name.lower()]


def read_prompt_file(file: Path) -> PromptFile:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise BadInputError(f"{file} is too large for a prompt: at most {_MAX_BYTES:,} bytes")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file} is not UTF-8: {error.reason} at byte {error.start:,}") from None
    except OSError as error:
        raise BadInputError(f"can't read {file}: {format_os_error(error)}") from None
    head = _FRONT_MATTER.match(text)
    described = _DESCRIPTION.search(head[1]) if head else None
    body = text[head.end() :] if head else text
    description = described[1].strip().strip("\"'") if described else next(iter(body.strip().splitlines()), "")
    return PromptFile(file.stem.lower(), file, body.strip(), description)

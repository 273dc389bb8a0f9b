"""What the user set: a flag, else a `SEGUE_*` variable, else `.segue.toml` of the project, else the user's file.

    store = "~/chats.db"

    [providers.openai-chat]
    tool_format = "hermes"

The project's file is the nearest one above the working directory. It may come with somebody else's project, so it can
name a file for the store, and no server.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import click

from segue.cli.streams import Unreadable, reason

__all__ = ["store", "tool_format"]

_PROJECT = ".segue.toml"
_USER = "config.toml"
_SETTINGS = frozenset({"tool_format"})


def tool_format(flag: str | None, api: str) -> str:
    """How tools are written for an API."""
    chosen = flag or os.environ.get("SEGUE_TOOL_FORMAT")
    if chosen:
        return chosen
    for file, settings in _files():
        given = _providers(file, settings).get(api, {}).get("tool_format")
        if given is None:
            continue
        if not isinstance(given, str):
            raise Unreadable(f"{file}: providers.{api}.tool_format must be a string")
        return given
    return "auto"


def store() -> str | None:
    """Where the files say that conversations are kept; `SEGUE_STORE` counts more, and is not looked at here."""
    from segue.errors import InputError
    from segue.store import file_of

    for file, settings in _files():
        given = settings.get("store")
        if given is None:
            continue
        if not isinstance(given, str) or not given:
            raise Unreadable(f"{file}: store must be a file or a postgresql:// address")
        try:
            named = file_of(given)
        except InputError as error:
            raise Unreadable(f"{file}: {error}") from None
        if named is not None:
            return str(file.parent / Path(given).expanduser())
        if file.name == _PROJECT:
            raise Unreadable(f"{file}: store must be a file here; a server is named in your own {_USER}")
        return given
    return None


def _files() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """What each file says, the one that counts most first."""
    here = Path.cwd()
    project = next((folder / _PROJECT for folder in (here, *here.parents) if (folder / _PROJECT).is_file()), None)
    user = Path(click.get_app_dir("segue")) / _USER
    for file in (project, user if user.is_file() else None):
        if file is not None:
            yield file, _settings(file)


def _settings(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"can't read {file}: {reason(error)}") from None
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{file} is not TOML: {error}") from None


def _providers(file: Path, settings: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    providers: object = settings.get("providers", {})
    if not isinstance(providers, dict):
        raise Unreadable(f"{file}: providers must be a table")
    for name, told in cast("dict[str, object]", providers).items():
        if not isinstance(told, dict):
            raise Unreadable(f"{file}: providers.{name} must be a table")
        for key in cast("dict[str, object]", told):
            if key not in _SETTINGS:
                raise Unreadable(f"{file}: providers.{name}.{key} is no setting; known are {', '.join(_SETTINGS)}")
    return cast("dict[str, dict[str, Any]]", providers)

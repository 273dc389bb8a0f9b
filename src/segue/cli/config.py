"""What the user set: a flag, else a `SEGUE_*` variable, else `.segue.toml` of the project, else the user's file.

    [providers.openai-chat]
    tool_format = "hermes"

The project's file is the nearest one above the working directory.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import click

from segue.cli.streams import Unreadable, reason

__all__ = ["tool_format"]

_PROJECT = ".segue.toml"
_USER = "config.toml"
_SETTINGS = frozenset({"tool_format"})


def tool_format(flag: str | None, api: str) -> str:
    """How tools are written for an API."""
    chosen = flag or os.environ.get("SEGUE_TOOL_FORMAT")
    if chosen:
        return chosen
    for file, providers in _files():
        given = providers.get(api, {}).get("tool_format")
        if given is None:
            continue
        if not isinstance(given, str):
            raise Unreadable(f"{file}: providers.{api}.tool_format must be a string")
        return given
    return "auto"


def _files() -> Iterator[tuple[Path, Mapping[str, Mapping[str, Any]]]]:
    """The tables of providers, the one that counts most first."""
    here = Path.cwd()
    project = next((folder / _PROJECT for folder in (here, *here.parents) if (folder / _PROJECT).is_file()), None)
    user = Path(click.get_app_dir("segue")) / _USER
    for file in (project, user if user.is_file() else None):
        if file is not None:
            yield file, _providers(file)


def _providers(file: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"can't read {file}: {reason(error)}") from None
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{file} is not TOML: {error}") from None
    providers: object = told.get("providers", {})
    if not isinstance(providers, dict):
        raise Unreadable(f"{file}: providers must be a table")
    for name, settings in cast("dict[str, object]", providers).items():
        if not isinstance(settings, dict):
            raise Unreadable(f"{file}: providers.{name} must be a table")
        for key in cast("dict[str, object]", settings):
            if key not in _SETTINGS:
                raise Unreadable(f"{file}: providers.{name}.{key} is no setting; known are {', '.join(_SETTINGS)}")
    return cast("dict[str, dict[str, Any]]", providers)

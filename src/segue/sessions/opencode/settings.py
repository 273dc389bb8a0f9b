"""opencode's settings: the model that it would use, and the names of its MCP servers.

They are merged from the files of the user and of the project, as the client merges them; a file that can't be parsed is
skipped. Without a model there, it is the one that was used last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions import files
from segue.sessions.any_provider import objects_of
from segue.sessions.client import ClientHome
from segue.sessions.opencode.database import Database, locate_database
from segue.sessions.values import object_of, string_of

Model = tuple[str, str]
"""The names of a provider and of its model."""
UNKNOWN_MODEL: Model = ("segue", "moved")
"""Written where no model is known: every message must name one."""
_NAMES = ("opencode.json", "opencode.jsonc")
# A string, or a comment, or a comma before a closing bracket.
_JSON_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)
_NOT_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def read_settings(home: ClientHome, cwd: str) -> dict[str, Any]:
    """Return the settings that apply in a folder."""
    merged: dict[str, Any] = {}
    for text in _texts(home, Path(cwd)):
        try:
            settings = object_of(parse_json(_JSON_TOKEN.sub(lambda found: found[1] or "", text).encode())[0])
        except InputError:
            continue
        merged = _merge(merged, settings)
    return merged


def _texts(home: ClientHome, cwd: Path) -> Iterator[str]:
    """Yield the contents of the settings files; later ones have precedence."""
    environ = home.environ
    folder = home.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    paths = [folder / name for name in ("config.json", *_NAMES)]
    if environ.get("OPENCODE_CONFIG"):
        paths.append(Path(environ["OPENCODE_CONFIG"]))
    folders = list(_project_folders(cwd))
    paths += [each / name for each in reversed(folders) for name in _NAMES]
    paths += [each / ".opencode" / name for each in (*folders, home.path) for name in _NAMES]
    if environ.get("OPENCODE_CONFIG_DIR"):
        paths += [Path(environ["OPENCODE_CONFIG_DIR"]) / name for name in _NAMES]
    for path in paths:
        try:
            yield path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    yield environ.get("OPENCODE_CONFIG_CONTENT") or "{}"


def _project_folders(cwd: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository."""
    for folder in (cwd, *cwd.parents):
        yield folder
        if (folder / ".git").exists():
            return


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        nested = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value)) if nested else value
    return merged


def read_servers(home: ClientHome, cwd: str) -> tuple[str, ...]:
    """Return the names of the configured MCP servers, as they are in the names of their tools."""
    return tuple(_NOT_NAME.sub("_", name) for name in object_of(read_settings(home, cwd).get("mcp")))


def find_default_model(home: ClientHome, cwd: str) -> Model | None:
    """Return the model of the settings, or the one that was used last, or the first one of a configured provider."""
    settings = read_settings(home, cwd)
    provider, _, name = str(settings.get("model") or "").partition("/")
    if provider and name:
        return provider, name
    return _find_recent(home) or _find_last_used(home) or _find_configured(settings)


def _find_recent(home: ClientHome) -> Model | None:
    path = home.folder("XDG_STATE_HOME", ".local", "state") / "opencode" / "model.json"
    recent = objects_of(files.read_object(path).get("recent"))
    return next((model for each in recent if (model := _parse_model(each, "modelID"))), None)


def _find_last_used(home: ClientHome) -> Model | None:
    try:
        used = Database(locate_database(home)).list_models()
    except InputError:
        return None
    models = (_parse_model(each, "id") for each in used)
    return next((model for model in models if model not in (None, UNKNOWN_MODEL)), None)


def _find_configured(settings: dict[str, Any]) -> Model | None:
    for provider, values in object_of(settings.get("provider")).items():
        for name in object_of(object_of(values).get("models")):
            return provider, name
    return None


def _parse_model(value: dict[str, Any], key: str) -> Model | None:
    provider, name = string_of(value.get("providerID")), string_of(value.get(key))
    return (provider, name) if provider and name else None

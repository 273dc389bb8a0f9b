"""`Program`: how a coding client is started on a gateway, by variables and flags: the user's settings stay as they are.

Where a client has no such means, a temporary folder has a file in place of one of the user's, and links to all others.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from segue import private_files
from segue.sessions import files

KEY_VARIABLE = "SEGUE_CLIENT_KEY"
PROVIDER = "segue"
MODEL = "segue"
"""The model of clients: a name without a provider, so that `-m` and `segue route` decide what it is."""
MAX_OUTPUT = 32_000
_CONTEXT = 200_000


class Launch(Struct, frozen=True):
    """How a client is started: more arguments before the user's, variables to set, and variables to remove.

    `folders` are those of the user that must exist before the start.
    """

    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    removed: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()


class LaunchContext(Struct, frozen=True):
    """The gateway, the key of this client, the model, a temporary folder, and the user's variables.

    `model` is the name that the client shows, `context` the model's size in tokens.
    """

    url: str
    key: str
    model: str
    folder: Path
    environ: Mapping[str, str]
    context: int = _CONTEXT


class ModelSetting(Struct, frozen=True):
    """Where a client keeps the model that its user chose last, and the variable that takes precedence over it.

    `list_files` returns the files of settings, first those with precedence, given the user's variables and the folder;
    `keys` lead to the name. `default` is the client's own default.
    """

    variable: str
    list_files: Callable[[Mapping[str, str], Path], Sequence[Path]]
    keys: tuple[str, ...]
    default: str

    def find(self, environ: Mapping[str, str], folder: Path) -> str | None:
        """Return the name that the client would use."""
        if environ.get(self.variable):
            return environ[self.variable]
        names = (self._read(path) for path in self.list_files(environ, folder))
        return next((name for name in names if name), None)

    def _read(self, path: Path) -> str | None:
        value: Any = files.read_object(path)
        for key in self.keys:
            value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
        return value if isinstance(value, str) else None


class Program(ABC):
    """A coding client as a program: its name here and on the command line, how it is installed, how it is started.

    `buffer_tool_calls`: the client keeps a call of a broken stream, so it gets calls only when they are complete.
    `newer_flags` are flags that its older versions do not have. `model_setting` is None where the flags and files of
    the start decide the model anyway.
    """

    name: ClassVar[str]
    program: ClassVar[str]
    package: ClassVar[str]
    installer: ClassVar[str] = "npm install -g"
    buffer_tool_calls: ClassVar[bool] = False
    newer_flags: ClassVar[tuple[str, ...]] = ()
    model_setting: ClassVar[ModelSetting | None] = None

    @abstractmethod
    def launch(self, context: LaunchContext) -> Launch:
        """Return how the client is started on a gateway."""

    def start(self, context: LaunchContext, own_model: str | None) -> Launch:
        """Return how the client is started. `own_model` is the model of its own settings that may stay, if any."""
        launch = self.launch(context)
        if self.model_setting is None:
            return launch
        variables = {**launch.variables, self.model_setting.variable: own_model or self.model_setting.default}
        return msgspec.structs.replace(launch, variables=variables)


def overlay(
    own: Path, folder: Path, files: Mapping[str, Any], linked: Iterable[str] = (), left_out: Iterable[str] = ()
) -> None:
    """Fill a folder with links to the entries of another, except for these files and those left out.

    Entries in `linked` are linked even if they do not exist yet.
    """
    existing = (entry.name for entry in own.iterdir()) if own.is_dir() else ()
    replaced = {*files, *left_out}
    for name in dict.fromkeys((*existing, *linked)):
        if name not in replaced:
            (folder / name).symlink_to(own / name)
    for name, content in files.items():
        write_json(folder / name, content)


def write_json(path: Path, content: Any) -> Path:
    private_files.replace(path, json.dumps(content).encode(), is_durable=False)
    return path

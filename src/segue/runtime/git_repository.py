"""A git repository, read without running anything that it names.

The settings of a repository name programs: filters, hooks, `core.fsmonitor`, `gpg.program`, and others in later
versions of git. So they are not overridden one by one: `run_git` gives git a folder and a configuration of its own, in
which links lead to the data of the repository. What git does not read can't name a program.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_TIMEOUT = 3.0
_MAX_FILE = 1_000_000
_MAX_SETTINGS_FILES = 50
_OWN_DATA = ("index", "sharedindex.*")
_COMMON_DATA = ("objects", "refs", "packed-refs", "shallow", "reftable", "info/exclude")
# The settings without which the data is read wrongly, by section. Their values are single words.
_SETTINGS = {
    "core": ("filemode", "ignorecase", "symlinks", "precomposeunicode"),
    "extensions": ("objectformat", "refstorage"),
}
_SETTING = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?(?P<key>[A-Za-z][\w-]*)\s*=\s*(?P<value>.*)$", re.MULTILINE)
_REFERENCE = re.compile(r"ref: refs/heads/(?P<branch>\S+)")
# Settings whose values are data: no program runs what they name.
_DATA_KEY = re.compile(
    r"worktree|excludesfile|ignorerevsfile|url|pushurl|insteadof|pushinsteadof|directory|repo|recentrepo", re.IGNORECASE
)
# Settings with the path of a file or folder as the whole value.
_PATH_KEY = re.compile(r".*(path|file|dir)", re.IGNORECASE)
# What a shell takes for the end of a word, and what stands for a folder at the beginning of one.
_WORD_END = re.compile(r"[\s\"'`;|&!=()<>]+|:(?!//)")
_FOLDER_VARIABLE = re.compile(r"^(\$\{?\w+\}?)?/+")


class Repository(Struct, frozen=True):
    """A repository. `own` has what belongs to this work tree (`HEAD`, the index), `common` the rest."""

    work_tree: Path
    own: Path
    common: Path

    @property
    def branch(self) -> str:
        """The branch, or the commit without one; empty if `HEAD` can't be read."""
        head = read_text(self.own / "HEAD")
        found = _REFERENCE.match(head)
        return found["branch"] if found is not None else f"none, at {head.strip()[:12]}" if head.strip() else ""

    def list_programs(self) -> Iterator[Path]:
        """Yield the paths that the configuration may name, of programs, hooks and more configuration, by any word.

        That of the user counts too, as it may name paths relative to the repository.
        """
        files = [*_list_user_settings(), self.common / "config", self.own / "config.worktree"]
        for file in files:  # grows
            for key, value in _read_settings(file):
                for word in _list_words(key, value, self.work_tree):
                    path = Path(os.path.normpath(self.work_tree / word))
                    # A setting does not guard the whole work tree.
                    if not self.work_tree.is_relative_to(path):
                        yield path
                if key == "path":
                    included = file.parent / os.path.expanduser(_unquote(value))  # noqa: PTH111
                    yield included
                    files += [included] if included not in files and len(files) < _MAX_SETTINGS_FILES else []

    def list_settings(self) -> Iterator[tuple[str, str]]:
        """Yield the settings of all sections, each with its last name, without those of included files."""
        for file in (self.common / "config", self.own / "config.worktree"):
            yield from _read_settings(file)


def _list_user_settings() -> Iterator[Path]:
    """Yield the files of the user's configuration."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config"
    chosen = os.environ.get("GIT_CONFIG_GLOBAL")
    yield from (Path("/etc/gitconfig"), *([Path(chosen)] if chosen else [settings, home / ".gitconfig"]))


def _read_settings(file: Path) -> Iterator[tuple[str, str]]:
    for found in _SETTING.finditer(re.sub(r"\\\r?\n", "", read_text(file))):
        if "\0" not in found["value"]:
            yield found["key"].lower(), found["value"].strip()


def _unquote(value: str) -> str:
    """Return the value that git reads."""
    return re.sub(r"\\(.)|\"", r"\1", value)


def _list_words(key: str, value: str, work_tree: Path) -> Iterator[str]:
    """Yield what may be a path in a value: words with a slash, and others if there is such a file in the work tree."""
    text = _unquote(value)
    if _DATA_KEY.fullmatch(key) and "::" not in text:
        return
    if _PATH_KEY.fullmatch(key):
        yield os.path.expanduser(text)  # noqa: PTH111
    words = set(_WORD_END.split(text))
    with suppress(ValueError):
        words |= set(shlex.split(text))
    for word in words if len(words) > 1 or "/" in text else ():
        if "/" in word:
            yield from (os.path.expanduser(word), _FOLDER_VARIABLE.sub("", word))  # noqa: PTH111
        elif os.path.isfile(work_tree / word):  # noqa: PTH113
            yield word


def read_text(path: Path) -> str:
    """Return the beginning of a regular file; empty if there is none. Pipes and devices are not read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        return os.read(handle, _MAX_FILE).decode("utf-8", "replace") if is_file else ""
    except OSError:
        return ""
    finally:
        os.close(handle)


def find_root(folder: Path) -> Path | None:
    """Return the nearest folder with a git repository."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def open_repository(root: Path) -> Repository:
    """Return the repository of a folder with `.git`, which is a file in a linked work tree and in a submodule."""
    own = root / ".git"
    if link := read_text(own):
        own = root / link.removeprefix("gitdir:").strip()
    common = read_text(own / "commondir").strip()
    return Repository(root, own, own / common)


def run_git(repository: Repository, *arguments: str) -> str | None:
    """Return the output of a git command that only reads; None if it fails or takes too long."""
    with tempfile.TemporaryDirectory(prefix="segue-git-") as name:
        folder = Path(name)
        _link_data(repository, folder)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment |= {
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(repository.work_tree),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        try:
            # In a folder of its own, as PATH may have relative folders.
            ended = subprocess.run(
                ["git", "--no-pager", *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return ended.stdout.decode("utf-8", "replace").rstrip("\n") if ended.returncode == 0 else None


def _link_data(repository: Repository, folder: Path) -> None:
    """Make a git folder with the data of the repository, and only those of its settings that the data needs."""
    (folder / "info").mkdir()
    (folder / "HEAD").write_text(read_text(repository.own / "HEAD"), "utf-8")
    for source, names in ((repository.own, _OWN_DATA), (repository.common, _COMMON_DATA)):
        for pattern in names:
            for path in source.glob(pattern):
                (folder / path.relative_to(source)).symlink_to(path.absolute())
    found = {key: value for key, value in repository.list_settings() if re.fullmatch(r"\w+", value)}
    lines = ["[core]", "repositoryformatversion = 1", "bare = false"]
    for section, keys in _SETTINGS.items():
        lines += [f"[{section}]", *(f"{key} = {found[key]}" for key in keys if key in found)]
    (folder / "config").write_text("\n".join(lines) + "\n", "utf-8")

"""The guarded paths in a folder: found before a command runs in the sandbox, and compared after it.

Existing guarded paths are mounted read-only. A guarded path that is new after the command, at any depth, is renamed so
that no program reads it. So is what took the place of a guarded path after a folder above was renamed.
Every folder that git takes for a repository is guarded, whatever its name is, and so are the programs in the folder
that the configuration of its repository names, those that are found by PATH, segue itself, and what guarded links lead
to. New links to folders that are not searched are renamed too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from segue.runtime.git_repository import find_root, open_repository
from segue.runtime.guarded_names import is_guarded_name, may_hold_guarded
from segue.runtime.sandbox import MOVED_PREFIX, make_listable, move_aside, place_of
from segue.runtime.tool_types import ToolError

# Their contents are code of the project that later programs run in any case; only repositories are searched there.
_PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
# Of another file system, or replaced in the sandbox.
_SYSTEM_FOLDERS = frozenset({"/proc", "/sys", "/dev", "/run", "/tmp"})
# Folders of a repository with many files, which no program runs.
_GIT_DATA = frozenset({"objects", "refs", "logs", "lfs"})
# Bubblewrap takes long to mount many.
_MAX_MOUNTS = 100
# What makes a folder a repository for git.
_REPOSITORY_NAMES = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})
# What this process runs, and loads more of.
_OWN_FOLDERS = (sys.prefix, str(Path(__file__).parents[2]))


_FileState: TypeAlias = tuple[str, int, int]
# A path, and what the link there says.
_Link: TypeAlias = tuple[str, str]


class _File(Struct, frozen=True):
    """What a path is: the numbers of its inode, and of the one that it leads to if it is a link."""

    own: tuple[int, int]
    target: tuple[int, int] | None

    @classmethod
    def find(cls, path: str) -> _File | None:
        try:
            own = os.lstat(path)
        except OSError:
            return None
        target = None
        with suppress(OSError):
            facts = os.stat(path)
            target = facts.st_dev, facts.st_ino
        return cls((own.st_dev, own.st_ino), target)


class GuardedPaths(Struct, frozen=True):
    """The guarded paths of a folder as they are before a command. `read_only` must be mounted read-only.

    The home folder, a repository without a work tree and a folder of PATH are read-only as a whole: any name there may
    be run.
    """

    root: Path
    read_only: tuple[str, ...]
    known: frozenset[tuple[_File, str]] = frozenset()
    """The guarded files with their paths; with only their names, if they keep their effect wherever their folder is."""
    programs: frozenset[str] = frozenset()
    links: dict[str, _File | None] = {}
    """Links in guarded folders and paths of programs, with what they led to."""
    all_links: frozenset[_Link] = frozenset()
    unmounted: dict[str, frozenset[_FileState]] = {}
    """The other guarded paths, if there are too many to mount: renamed if the command changed or moved them."""

    @classmethod
    def find(cls, folder: Path, more: Iterable[Path] = ()) -> GuardedPaths:
        """Search a folder and everything below it, without following links; nothing, if it is read-only itself.

        `more` are other programs that are guarded if they are in the folder.
        """
        root = Path(os.path.realpath(folder))
        above = tuple(_list_repository_above(root))
        run = set(_list_run(root, more))
        if contains_home(root) or str(root) in run or any(map(_is_repository, (root, *root.parents))):
            return cls(root, (str(root), *above))
        run = {path for path in run if _is_below(path, root)}
        programs = {*run, *_list_programs(find_root(root), root)}
        all_links: set[_Link] = set()
        found = [path for path, _ in _search(root, programs, all_links)]
        known = {(file, path) for path in found if (file := _File.find(path)) is not None}
        links = {path: _File.find(path) for path in programs}
        found += [path for path in map(os.path.realpath, programs) if _is_below(path, root)]
        shared: set[tuple[int, int]] = set()
        for path in found:  # grows
            # Links of installed programs lead to installed code.
            for file in () if path in run else _list_files(path):
                if os.path.islink(file):
                    links[file] = _File.find(file)
                    target = os.path.realpath(file)
                    if _is_below(target, root) and target not in found and os.path.exists(target):
                        found.append(target)
                    continue
                with suppress(OSError):
                    if (facts := os.lstat(file)).st_nlink > 1:
                        shared.add((facts.st_dev, facts.st_ino))
        if shared:
            found += _find_names(root, shared)
        paths = {path for path in found if os.path.exists(path) and not os.path.islink(path)}
        order = sorted(paths, key=lambda path: (path.count("/"), path))
        unmounted = {path: _read_states(path) for path in order[_MAX_MOUNTS:]}
        read_only = (*order[:_MAX_MOUNTS], *above)
        # What is mounted keeps its name and its content.
        known |= {(file, Path(path).name) for file, path in known if path not in unmounted and not _is_pair(path)}
        return cls(root, read_only, frozenset(known), frozenset(programs), links, frozenset(all_links), unmounted)

    def without_new(self, earlier: GuardedPaths) -> GuardedPaths:
        """Return these paths without those that are new since the earlier ones were found."""
        if self.root != earlier.root:
            return self
        known, all_links = self.known & earlier.known, self.all_links & earlier.all_links
        return msgspec.structs.replace(self, known=known, all_links=all_links)

    def move_new(self, temporary: Path) -> list[str]:
        """Rename what is new or was replaced; return the names, each with the new one.

        So are new links to folders below `temporary`, where commands can write too.
        """
        if str(self.root) in self.read_only:
            return []
        moved: dict[str, str] = {}
        # Something renamed may have guarded paths in it, which were not searched. It is not renamed again itself.
        while new := {path for path in self._list_new(temporary) if path not in moved and not _is_moved(path)}:
            moved |= {path: self._move(path) for path in new}
        names = {os.path.relpath(path, self.root): outcome for path, outcome in moved.items()}
        return [f"{name} ({outcome})" for name, outcome in names.items() if MOVED_PREFIX not in name]

    def _list_new(self, temporary: Path) -> Iterator[str]:
        for path, name in _search(
            self.root, set(self.programs), set(self.all_links), self, os.path.realpath(temporary)
        ):
            if not self.is_known(path):
                yield name
        for path, states in self.unmounted.items():
            if os.path.lexists(path) and _read_states(path) != states:
                yield path
        for link, before in self.links.items():
            now, target = _File.find(link), os.path.realpath(link)
            if now is not None and now.target not in (None, before and before.target):
                yield target if _is_below(target, self.root) else link

    def is_known(self, path: str) -> bool:
        """Return whether what is at a path was there before, or at another one where it has the same effect."""
        file = _File.find(path)
        return file is not None and ((file, path) in self.known or (file, Path(path).name) in self.known)

    def _move(self, path: str) -> str:
        try:
            return f"now {move_aside(place_of(Path(path), self.root))}"
        except ToolError as error:
            return f"not renamed: {error}"


def contains_home(folder: Path) -> bool:
    """Return whether a folder is the user's home folder, or above it."""
    try:
        home = Path.home()
    except RuntimeError:
        return False
    return home.is_absolute() and Path(os.path.realpath(home)).is_relative_to(folder)


def _search(
    root: Path, programs: set[str], links: set[_Link], before: GuardedPaths | None = None, temporary: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield each guarded path, and the name that gives it its effect: of a repository, that of its `HEAD`.

    Before a command, the programs that repositories name are added, and all links. After it, with `before`, folders
    that it made unreadable are made readable, and new links to folders that are not searched are guarded paths.
    """
    folders = [(str(root), root.name, False)]
    while folders:
        folder, folder_name, is_package = folders.pop()
        entries = _list_folder(folder)
        if entries is None and before is not None and _File.find(folder) not in before.known:
            with suppress(ToolError):
                make_listable(place_of(Path(folder), root))
            entries = _list_folder(folder)
        if entries is None:
            yield folder, folder
            continue
        names = {entry.name for entry in entries}
        if any(map(names.issuperset, _REPOSITORY_NAMES)):
            yield folder, f"{folder}/HEAD"
            continue
        if before is None and ".git" in names:
            programs.update(_list_programs(Path(folder), root))
        for entry in entries:
            is_guarded = entry.name == ".git" if is_package else is_guarded_name(entry.name, folder_name)
            # `mise`, a link to a folder with a `config.toml`.
            is_guarded |= not is_package and may_hold_guarded(entry.name) and _is_link_to_folder(entry.path)
            if is_guarded or entry.path in programs:
                yield entry.path, entry.path
            elif entry.is_symlink():
                link = entry.path, _read_link(entry.path)
                if before is None:
                    links.add(link)
                elif link not in links and _leads_out(
                    *link, root, temporary, is_package or entry.name in _PACKAGE_FOLDERS
                ):
                    yield entry.path, entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.path not in _SYSTEM_FOLDERS:
                folders.append((entry.path, entry.name, is_package or entry.name in _PACKAGE_FOLDERS))


def _is_link_to_folder(path: str) -> bool:
    """Return whether a path is a link to a folder, or to nothing yet."""
    return os.path.islink(path) and not os.path.isfile(path)


def _leads_out(link: str, text: str, root: Path, temporary: str, is_package: bool) -> bool:
    """Return whether a link leads to a folder that commands can write and that is not searched, or may later."""
    target = os.path.realpath(link)
    if os.path.exists(target) and not os.path.isdir(target):
        return False
    # What it leads to depends on the process.
    if "/proc/" in text:
        return True
    if not Path(target).is_relative_to(root):
        return Path(target).is_relative_to(temporary)
    return not is_package and not _PACKAGE_FOLDERS.isdisjoint(Path(target).relative_to(root).parts)


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _is_moved(path: str) -> bool:
    return Path(path).name.startswith(MOVED_PREFIX)


def _is_pair(path: str) -> bool:
    """Return whether a name is guarded only in a folder of a certain name, which may get its effect by a new name."""
    name, folder = Path(path).name, Path(path).parent.name
    return is_guarded_name(name, folder) and not is_guarded_name(name)


def _list_folder(folder: str) -> list[os.DirEntry[str]] | None:
    """Return the entries of a folder; None if this user may not list it."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        return None
    except OSError:
        return []


def _list_programs(work_tree: Path | None, root: Path) -> Iterator[str]:
    """Yield the paths below the root that the configuration of a repository names as programs."""
    if work_tree is not None:
        for path in open_repository(work_tree).list_programs():
            if _is_below(name := os.path.normpath(path), root):
                yield name


def _list_run(root: Path, more: Iterable[Path]) -> Iterator[str]:
    """Yield the folders of PATH, where a new file takes the place of any program, this program, and `more`."""
    folders = map(os.path.normpath, os.environ.get("PATH", "").split(os.pathsep))
    # A "." in PATH does not make every folder read-only.
    for path in (*(folder for folder in folders if folder != "."), *_OWN_FOLDERS, *more):
        yield from (os.path.normpath(root / path), os.path.realpath(root / path))


def _list_repository_above(root: Path) -> Iterator[str]:
    """Yield the files of the repository of a folder that are outside of the folder; they may be in /tmp."""
    if (work_tree := find_root(root)) is not None:
        repository = open_repository(work_tree)
        folders = [path for path in (repository.own, repository.common) if _is_repository(path)]
        for path in (work_tree / ".git", *folders) if folders else ():
            if not _is_below(name := os.path.realpath(path), root):
                yield name


def _list_files(path: str) -> Iterator[str]:
    """Yield the files and links of a guarded path, without the data of repositories."""
    if not os.path.isdir(path) or os.path.islink(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        if "HEAD" in files:
            folders[:] = [name for name in folders if name not in _GIT_DATA]
        yield from (f"{folder}/{name}" for name in files)
        yield from (link for name in folders if os.path.islink(link := f"{folder}/{name}"))


def _read_states(path: str) -> frozenset[_FileState]:
    """Return the files of a guarded path with what changes when they do."""
    states: set[_FileState] = set()
    for file in _list_files(path):
        with suppress(OSError):
            facts = os.lstat(file)
            states.add((file, facts.st_ino, facts.st_ctime_ns))
    return frozenset(states)


def _find_names(root: Path, files: set[tuple[int, int]]) -> Iterator[str]:
    """Yield all names of these files, which have several."""
    numbers = {number for _, number in files}
    folders = [str(root)]
    while folders:
        for entry in _list_folder(folders.pop()) or ():
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.inode() in numbers and (file := _File.find(entry.path)) is not None and file.own in files:
                yield entry.path


def _is_repository(folder: Path) -> bool:
    return any(all(os.path.exists(folder / name) for name in names) for names in _REPOSITORY_NAMES)


def _is_below(path: str, root: Path) -> bool:
    return Path(path) != root and Path(path).is_relative_to(root)

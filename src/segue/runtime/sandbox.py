"""The path sandbox: resolving paths, checking access, and opening exactly what was resolved.

Access depends on the resolved path, with links and `..` followed, whether the file exists or not. `open_file` and
`open_folder` open the resolved path component by component without following links, so if a component was replaced by a
link after the check, opening fails.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from segue.runtime.guarded_names import has_guarded_part
from segue.runtime.tool_types import ApprovalRequest, ApprovalScope, Context, ToolError

_SYSTEM_FOLDERS = tuple(Path(name) for name in ("/proc", "/sys", "/dev", "/run", "/etc/ssl/private", "/var/run"))
_SYSTEM_FILES = frozenset(Path(name) for name in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"))

TEMPORARY_PREFIX = ".segue-"
"""The beginning of the names of files that are being written."""
SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID
PathKind: TypeAlias = Literal["file", "link", "folder"]
MOVED_PREFIX = "segue-moved-"
"""The beginning of the names of files and folders that `move_aside` renamed."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
# O_PATH: passing through a folder does not need permission to list it.
_TRAVERSE = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY | _CLOEXEC
_CHANGED_ERROR = "{} changed while it was being opened; check it and repeat the call"


class ResolvedPath(Struct, frozen=True):
    """A resolved path. `display` is relative to the `root` folder if inside it; `given` is the path before resolution.

    `is_guarded` marks paths that no rule with a glob covers: guarded names and system folders.
    """

    path: Path
    root: Path
    is_inside: bool
    display: str
    given: str
    is_guarded: bool


def resolve(text: str, folder: Path) -> ResolvedPath:
    """Resolve a path relative to the folder. The file need not exist."""
    if not text or "\0" in text:
        raise ToolError("the path is empty" if not text else "a path can't have a null character in it")
    base = Path(os.path.realpath(folder))
    given = base / _expand_home(text)
    path = Path(os.path.realpath(given))
    with suppress(OSError):
        if path.is_symlink():
            raise ToolError(f"{text} is a link that leads to itself")
    short, given_short = _shorten_path(path, base), _shorten_path(Path(os.path.normpath(given)), base)
    guarded = _is_guarded(short) or (given_short != short and has_guarded_part(given_short.parts))
    inside = not short.is_absolute()
    return ResolvedPath(path, base, inside, short.as_posix(), given_short.as_posix(), guarded)


def _expand_home(text: str) -> Path:
    """Return the path with `~` expanded as in a shell."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _shorten_path(path: Path, base: Path) -> Path:
    """Return an absolute path relative to the base; outside of it, the path itself."""
    try:
        return path.relative_to(base)
    except ValueError:
        return path


def _is_guarded(short: Path) -> bool:
    """Return whether a resolved path is guarded; it is absolute outside of the working folder."""
    if short.is_absolute() and (short in _SYSTEM_FILES or any(map(short.is_relative_to, _SYSTEM_FOLDERS))):
        return True
    return has_guarded_part(short.parts)


# ------------------------------------------------------------------------------------------------------------- approval


def make_approval_request(
    tool: str, verb: str, place: ResolvedPath, *, change: bool = False, detail: str = ""
) -> ApprovalRequest:
    """Return the approval request for reading or changing a path; not `needed` for reading in the working folder."""
    needed = change or not place.is_inside
    where = "" if place.is_inside else ", outside the working folder"
    guard = (
        ", which is guarded: it runs automatically, controls what may run, or has secrets" if place.is_guarded else ""
    )
    through = f" (given as {place.given})" if place.given != place.display else ""
    return ApprovalRequest(
        tool,
        place.display,
        f"{verb} {place.display}{through}{where}{guard}",
        detail,
        needed=needed,
        path=place.path.as_posix(),
        aliases=(place.given,) if place.given != place.display else (),
        allowed_by="name" if place.is_guarded and needed else "pattern",
        changes=change,
        scopes=_list_scopes(tool, place, change=change),
    )


def _list_scopes(tool: str, place: ResolvedPath, *, change: bool) -> tuple[ApprovalScope, ...]:
    """Return wider scopes for an approval: the folder of the path, and all edits for a change in the working folder."""
    parent = place.path.parent
    folder = parent.relative_to(place.root).as_posix() if place.is_inside and place.path != place.root else str(parent)
    tools = ("write_file", "edit_file") if change else (tool,)
    scopes: list[ApprovalScope] = []
    if folder not in (".", "/") and not set("*?") & set(folder):
        label = f"{'edits' if change else tool} below {folder}/"
        scopes.append(ApprovalScope(label, tuple(f"{name}({folder}/*)" for name in tools)))
    if change and place.is_inside:
        scopes.append(ApprovalScope("all edits in this chat", tuple(f"{name}(*)" for name in tools)))
    return tuple(scopes)


def check_access(context: Context, tool: str, place: ResolvedPath, *, change: bool = False) -> None:
    """Raise `ToolError` if the path now resolves to another file than the one that was approved."""
    request = make_approval_request(tool, "", place, change=change)
    if request.needed and not context.is_granted(request):
        raise ToolError(_CHANGED_ERROR.format(place.given))


# -------------------------------------------------------------------------------------------------------------- opening


@contextmanager
def _open_folder_chain(place: ResolvedPath, folder: Path, *, make: bool = False) -> Generator[int]:
    """Open a resolved folder component by component, without following links."""
    start = place.root if folder == place.root or place.root in folder.parents else Path(folder.anchor)
    handle = os.open(start, _TRAVERSE | _NOFOLLOW)
    try:
        for part in folder.relative_to(start).parts:
            try:
                below = os.open(part, _TRAVERSE | _NOFOLLOW, dir_fd=handle)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
                below = os.open(part, _TRAVERSE | _NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def open_file(place: ResolvedPath, *, display_name: str | None = None) -> int:
    """Open a regular file for reading. Devices and pipes are rejected, as reading them may not end."""
    name = display_name or place.display
    with _translate_errors(name, place), _open_folder_chain(place, place.path.parent) as parent:
        # Without NONBLOCK, opening a pipe that has no writer would block.
        flags = os.O_RDONLY | _NOFOLLOW | _CLOEXEC | os.O_NONBLOCK
        handle = os.open(place.path.name or ".", flags, dir_fd=parent)
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)
            kind = "a folder; list_dir shows what is in it" if stat.S_ISDIR(mode) else "not a regular file"
            raise ToolError(f"{name} is {kind}")
        return handle


def open_folder(place: ResolvedPath) -> int:
    """Open a folder for listing."""
    with _translate_errors(place.display, place):
        if place.path == place.path.parent:
            return os.open(place.path, os.O_RDONLY | _DIRECTORY | _CLOEXEC)
        with _open_folder_chain(place, place.path.parent) as parent:
            return os.open(place.path.name, os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC, dir_fd=parent)


def replace_file(place: ResolvedPath, data: bytes, context: Context, mode: int | None = None) -> bool:
    """Write a file atomically, by a temporary file and rename. Return whether the file is new.

    Without a `mode` it has that of the file that it replaces, which must be writable. The file may get another owner,
    so the setuid and setgid bits are dropped.
    """
    name = place.path.name
    new_folders = [folder for folder in place.path.parents if not os.path.lexists(folder)]
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path.parent, make=True) as parent:
        earlier = _read_mode(name, parent, place, must_be_writable=mode is None)
        mode = earlier if mode is None else mode
        temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC
        handle = os.open(temporary, flags, 0o666, dir_fd=parent)
        try:
            with os.fdopen(handle, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode) & ~SPECIAL_BITS)
                created = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if context.cancelled.is_set():
                raise ToolError("cancelled; nothing was written")
            context.changes.before_write(place.path, place.root, data, created, new_folders)
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        return earlier is None


def place_of(path: Path, folder: Path) -> ResolvedPath:
    """Return the `ResolvedPath` of a path that is already resolved."""
    root = Path(os.path.realpath(folder))
    short = _shorten_path(path, root)
    display = short.as_posix()
    return ResolvedPath(path, root, not short.is_absolute(), display, display, _is_guarded(short))


def read_state(place: ResolvedPath, limit: int) -> tuple[PathKind, bytes | None, int, int] | None:
    """Return kind, content, mode and size of what is at a path; None if there is nothing, or a link on the way.

    The content of a link is its target. The content is None above the limit, and for a file that can't be read.
    """
    name = place.path.name
    with _translate_errors(place.display, place):
        try:
            with _open_folder_chain(place, place.path.parent) as parent:
                facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if stat.S_ISLNK(facts.st_mode):
                    target = os.fsencode(os.readlink(name, dir_fd=parent))
                    return "link", target, 0, len(target)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        return "folder", None, mode, 0
    if stat.S_ISREG(facts.st_mode) and not os.access(place.path, os.R_OK):
        return "file", None, mode, facts.st_size
    with os.fdopen(open_file(place), "rb") as file:
        data = file.read(limit + 1) if facts.st_size <= limit else None
        return "file", data if data is None or len(data) <= limit else None, mode, facts.st_size


def restore_link(place: ResolvedPath, target: bytes) -> None:
    """Create a link with this target."""
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path.parent, make=True) as parent:
        os.symlink(os.fsdecode(target), place.path.name, dir_fd=parent)


def restore_folder(place: ResolvedPath, mode: int) -> None:
    """Create a folder if there is none, and set its mode."""
    with (
        _translate_errors(place.display, place),
        _open_folder_chain(place, place.path.parent, make=True) as parent,
        suppress(FileExistsError),
    ):
        # Until its mode is set, others must not enter it.
        os.mkdir(place.path.name, 0o700, dir_fd=parent)
    set_mode(place, mode)


def set_mode(place: ResolvedPath, mode: int) -> None:
    """Set the mode of a file or folder."""
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path.parent) as parent:
        handle = os.open(place.path.name, os.O_RDONLY | os.O_NONBLOCK | _NOFOLLOW | _CLOEXEC, dir_fd=parent)
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)


def remove_path(place: ResolvedPath, folders: Iterable[Path] = ()) -> None:
    """Remove a file, a link or an empty folder, and then those of its folders that are empty, in this order."""
    name = place.path.name
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path.parent) as parent:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        (os.rmdir if is_folder else os.unlink)(name, dir_fd=parent)
    for folder in folders:
        with suppress(OSError), _open_folder_chain(place, folder.parent) as parent:
            os.rmdir(folder.name, dir_fd=parent)


def move_aside(place: ResolvedPath) -> str:
    """Rename a file, link or folder to a name that has no effect, in its folder; return the new name."""
    name = f"{MOVED_PREFIX}{secrets.token_hex(4)}"
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path.parent) as parent:
        try:
            os.rename(place.path.name, name, src_dir_fd=parent, dst_dir_fd=parent)
        except PermissionError:
            _grant_to_owner(parent)
            os.rename(place.path.name, name, src_dir_fd=parent, dst_dir_fd=parent)
    return name


def make_listable(place: ResolvedPath) -> None:
    """Let the owner list a folder and change it."""
    with _translate_errors(place.display, place), _open_folder_chain(place, place.path) as handle:
        _grant_to_owner(handle)


def _grant_to_owner(folder: int) -> None:
    # The handle is only good for passing through the folder.
    Path(f"/proc/self/fd/{folder}").chmod(stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)


def _read_mode(name: str, parent: int, place: ResolvedPath, *, must_be_writable: bool) -> int | None:
    """Return the mode of the file to be replaced; None if it does not exist."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise ToolError(_CHANGED_ERROR.format(place.given))
    if not stat.S_ISREG(mode):
        raise ToolError(f"{place.display} is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}")
    if must_be_writable and not os.access(name, os.W_OK, dir_fd=parent):
        raise ToolError(f"{place.display} is read-only")
    return mode


@contextmanager
def _translate_errors(name: str, place: ResolvedPath) -> Generator[None]:
    """Translate `OSError` into `ToolError` messages for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"there is no {name}{_suggest_names(place)}") from None
    except PermissionError:
        raise ToolError(f"no permission to access {name}") from None
    except OSError as error:
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _has_link(place.path)):
            raise ToolError(_CHANGED_ERROR.format(place.given)) from None
        if error.errno == errno.ENOTDIR:
            raise ToolError(f"{name}: the path, or a part of it, is not a folder") from None
        raise ToolError(f"{name}: {(error.strerror or str(error)).lower()}") from None


def _has_link(path: Path) -> bool:
    return any(step.is_symlink() for step in (path, *path.parents))


def _suggest_names(place: ResolvedPath) -> str:
    """Return similar names in the folder of a missing file."""
    if not place.is_inside:
        return ""
    try:
        names = sorted(os.listdir(place.path.parent))[:2000]  # noqa: PTH208
    except OSError:
        return ""
    lower = {name.casefold(): name for name in names}
    alike = get_close_matches(place.path.name.casefold(), lower, n=3)
    return "; there is " + ", ".join(lower[name] for name in alike) if alike else ""

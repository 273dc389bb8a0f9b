"""`Checkpoints`: restores files that the tools of a conversation changed.

Files that edit tools write are recorded before they are written. A shell command is recorded by comparing the folder
before and after it, if the folder is small enough; otherwise the journal states that its changes are unknown. Git
is not used, and `.git` is never changed. A file that was changed by something else since is a conflict: it is
overwritten only if the caller lists it. Restoring follows no links. A mode is restored if the tools changed it; setuid
and setgid bits that a file does not have by then are not set again.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypeGuard

import msgspec
from msgspec import Struct

from segue.errors import InputError, format_os_error
from segue.runtime.checkpoint_journal import (
    Change,
    CommandEnded,
    CommandStarted,
    FileState,
    Informed,
    Journal,
    Record,
    RestoredFile,
    Undone,
    Unrecorded,
    folder_root,
)
from segue.runtime.folder_snapshot import FolderSnapshot, SnapshotError
from segue.runtime.sandbox import (
    SPECIAL_BITS,
    ResolvedPath,
    place_of,
    read_state,
    remove_path,
    replace_file,
    restore_folder,
    restore_link,
    set_mode,
)
from segue.runtime.tool_types import ChangeRecorder, Context, ToolError

_MAX_FILE = 64_000_000
FileOutcome: TypeAlias = Literal["restore", "same", "conflict", "lost"]


class PlannedFile(Struct, frozen=True):
    """A file, link or folder to restore. Outcomes: it can be restored, it is the same already, it was changed since, or
    its content was not stored. `is_reduced`: without its setuid or setgid bit."""

    path: str
    display: str
    outcome: FileOutcome
    target: FileState | None
    current: FileState | None
    folders: tuple[str, ...] = ()
    is_reduced: bool = False


class UndoPlan(Struct, frozen=True):
    """What an undo or redo would do. `commands` ran, and what they changed is not known, for the reason given."""

    changes: tuple[Change, ...]
    files: tuple[PlannedFile, ...]
    commands: tuple[Unrecorded, ...] = ()
    redoes: str = ""

    def of(self, outcome: FileOutcome) -> list[PlannedFile]:
        return [file for file in self.files if file.outcome == outcome]


class UndoResult(Struct, frozen=True):
    """The files that were restored, that were kept because they were changed since, and errors by file. `reduced` lists
    those without their setuid or setgid bit."""

    restored: tuple[str, ...]
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()


class Checkpoints:
    """The changed files of one conversation in one folder. `base` is the folder with all journals of the user."""

    def __init__(self, base: Path, folder: Path, conversation: str) -> None:
        self._folder = folder
        self._journal = Journal(folder_root(base, folder), conversation)
        self._exchange = ""
        self._last: FolderSnapshot | None = None
        self._failure = ""

    def add_failure(self, error: Exception) -> None:
        """Keep the first error because of which changes are not recorded."""
        reason = format_os_error(error) if isinstance(error, OSError) else str(error)
        self._failure = self._failure or f"changes can't be undone: {reason} ({self._journal.root})"

    def take_failure(self) -> str:
        """Return the error since the last call, as a message for the user; empty if there is none."""
        failure, self._failure = self._failure, ""
        return failure

    def begin_exchange(self) -> str:
        """Start an exchange; return a note for the model if files were restored since the last one, else empty."""
        self._exchange = secrets.token_hex(6)
        if not self._journal.exists:
            return ""
        self.recover()
        return self._take_note()

    def recorder(self, call: str, tool: str) -> ChangeRecorder:
        """Return the recorder of one call."""
        return _CallRecorder(self, call, tool)

    # ------------------------------------------------------------------------------------------------------- recording

    def record_write(
        self, call: str, tool: str, path: Path, root: Path, data: bytes, mode: int, folders: Sequence[Path] = ()
    ) -> None:
        """Record a file before it is written. `folders` were created for it, the deepest first."""
        before = self._store_state(place_of(path, root))
        after = FileState(self._journal.store(data), mode, len(data))
        created = tuple(map(str, folders))
        self._journal.append(
            Change(secrets.token_hex(6), self._exchange, call, tool, str(path), before, after, created)
        )

    def start_command(self, call: str, command: str) -> Callable[[], None]:
        """Take a snapshot before a command; return the function to call after it."""
        name = f"{secrets.token_hex(6)}.snapshot"
        try:
            before = FolderSnapshot.take(self._folder, self._journal, self._last)
        except SnapshotError as error:
            self._journal.append(Unrecorded(self._exchange, call, command, str(error)))
            return lambda: None
        self._journal.write_snapshot(name, before.dump())
        started = CommandStarted(self._exchange, call, command, name)
        self._journal.append(started)
        return lambda: self._end_command(started, before)

    def _end_command(self, started: CommandStarted, before: FolderSnapshot, *, is_uncertain: bool = False) -> None:
        records: list[Record] = []
        try:
            after = FolderSnapshot.take(self._folder, self._journal, before)
        except SnapshotError as error:
            records.append(Unrecorded(started.exchange, started.call, started.command, str(error)))
        else:
            self._last = after
            root = self._folder.resolve()
            records += [
                Change(
                    secrets.token_hex(6),
                    started.exchange,
                    started.call,
                    "shell",
                    str(root / path),
                    old,
                    new,
                    tuple(str(root / folder) for folder in before.new_folders(path)),
                    is_uncertain,
                )
                for path, old, new in before.changes_to(after)
            ]
        self._journal.append(*records, CommandEnded(started.snapshot))
        self._journal.remove_snapshot(started.snapshot)

    def recover(self) -> None:
        """Record the changes of commands that were running when an earlier segue process was killed."""
        records = self._journal.read()
        ended = {record.snapshot for record in records if isinstance(record, CommandEnded)}
        for record in records:
            if isinstance(record, CommandStarted) and record.snapshot not in ended:
                data = self._journal.read_snapshot(record.snapshot)
                before = FolderSnapshot.load(data) if data is not None else None
                if before is not None:
                    self._end_command(record, before, is_uncertain=True)

    def _store_state(self, place: ResolvedPath) -> FileState | None:
        """Store the content of a file or link and return its state; None if there is nothing."""
        found = read_state(place, _MAX_FILE)
        if found is None:
            return None
        kind, data, mode, size = found
        return FileState(self._journal.store(data) if data is not None else None, mode, size, kind)

    # -------------------------------------------------------------------------------------------------------- planning

    def plan_undo(self, calls: Collection[str] | None = None) -> UndoPlan:
        """Plan to undo what these calls changed; by default those of the latest exchange that changed files."""
        records = self._journal.read()
        done = [record for record in records if isinstance(record, Change) and record.id not in _undone_ids(records)]
        unknown = [record for record in records if isinstance(record, Unrecorded)]
        if calls is not None:
            chosen = [change for change in done if change.call in calls]
            commands = [record for record in unknown if record.call in calls]
        else:
            exchange = done[-1].exchange if done else None
            chosen = [change for change in done if change.exchange == exchange]
            commands = [record for record in unknown if record.exchange == exchange]
        return UndoPlan(tuple(chosen), tuple(self._plan_files(chosen)), tuple(commands))

    def count_changes(self, calls: Collection[str]) -> list[tuple[str, int, int]]:
        """Return the files that these calls changed, each with the lines that were added and removed."""
        counts: list[tuple[str, int, int]] = []
        for file in self.plan_undo(calls).files:
            before, after = self._load_lines(file.target), self._load_lines(file.current)
            if file.outcome == "same" or "folder" in (state.kind for state in (file.target, file.current) if state):
                continue
            # Lines that stand in both are the same in any order: a diff of a large file would take long.
            old, new = Counter(before), Counter(after)
            counts.append((file.display, (new - old).total(), (old - new).total()))
        return counts

    def _load_lines(self, state: FileState | None) -> list[bytes]:
        data = self._journal.load(state.digest) if state is not None and state.digest is not None else None
        return (data or b"").splitlines()

    def _plan_files(self, changes: Sequence[Change]) -> Iterable[PlannedFile]:
        by_path: dict[str, list[Change]] = {}
        for change in changes:
            by_path.setdefault(change.path, []).append(change)
        for path, own in sorted(by_path.items()):
            folders = tuple(dict.fromkeys(folder for change in own for folder in change.folders))
            is_uncertain = any(change.is_uncertain for change in own)
            yield self._plan_file(path, own[0].before, own[-1].after, folders, is_uncertain=is_uncertain)

    def _plan_file(
        self,
        path: str,
        target: FileState | None,
        expected: FileState | None,
        folders: tuple[str, ...],
        *,
        is_uncertain: bool = False,
    ) -> PlannedFile:
        place = place_of(Path(path), self._folder)
        try:
            current = self._store_state(place)
        except ToolError:
            # A pipe or a device.
            return PlannedFile(path, place.display, "lost", target, None)
        if (
            target is not None
            and expected is not None
            and target.mode == expected.mode
            and target.kind == expected.kind
        ):
            # The tools did not change the mode: it stays as it is now.
            mode = current.mode if current is not None and current.kind == target.kind else target.mode
            target, expected = msgspec.structs.replace(target, mode=mode), msgspec.structs.replace(expected, mode=mode)
        elif target is None and expected is not None and current is not None:
            expected = msgspec.structs.replace(expected, mode=current.mode)
        is_reduced = False
        if target is not None and target.mode & SPECIAL_BITS:
            special = target.mode & current.mode if _is_chmod(current, target) else 0
            is_reduced = bool(target.mode & SPECIAL_BITS & ~special)
            target = msgspec.structs.replace(target, mode=target.mode & ~SPECIAL_BITS | special & SPECIAL_BITS)
        outcome: FileOutcome = "restore"
        if _is_same(current, target):
            outcome = "same"
        elif target is not None and target.kind != "folder" and not self._journal.has_content(target.digest):
            outcome = "lost"
        elif is_uncertain or not _is_same(current, expected):
            outcome = "conflict"
        return PlannedFile(path, place.display, outcome, target, current, folders, is_reduced)

    def plan_redo(self) -> UndoPlan:
        """Plan to restore what the last undo replaced; `InputError` if there is none, or tools changed files since."""
        records = self._journal.read()
        redone = {record.redoes for record in records if isinstance(record, Undone) and record.is_redo}
        last = next((record for record in reversed(records) if isinstance(record, Change | Undone)), None)
        undone = next(
            (
                record
                for record in reversed(records)
                if isinstance(record, Undone) and not record.is_redo and record.id not in redone
            ),
            None,
        )
        if undone is None:
            raise InputError("nothing to redo")
        if isinstance(last, Change):
            raise InputError("nothing to redo: tools have changed files since the undo")
        files = tuple(self._plan_file(file.path, file.replaced, file.restored, file.folders) for file in undone.files)
        ids = set(undone.changes)
        changes = tuple(record for record in records if isinstance(record, Change) and record.id in ids)
        return UndoPlan(changes, files, redoes=undone.id)

    # -------------------------------------------------------------------------------------------------------- restoring

    def apply(self, plan: UndoPlan, *, overwrite: bool = False, is_silent: bool = False) -> UndoResult:
        """Restore the files of a plan, with `overwrite` also those that were changed since.

        `is_silent` is for an undo that removes the messages too: the model is not informed.
        """
        restored: list[RestoredFile] = []
        kept: list[str] = []
        failed: list[str] = []
        # What is removed may be in the place of a folder that is restored, the deepest first.
        removed = [file for file in reversed(plan.files) if file.target is None]
        for file in (*removed, *(file for file in plan.files if file.target is not None)):
            if file.outcome == "conflict" and not overwrite:
                kept.append(file.display)
            elif file.outcome in ("restore", "conflict"):
                try:
                    self._restore(file, is_redo=bool(plan.redoes))
                except ToolError as error:
                    failed.append(str(error))
                    continue
                restored.append(RestoredFile(file.path, file.current, file.target, file.folders))
        restored.sort(key=lambda file: file.path)
        done = {file.path for file in restored} | {file.path for file in plan.of("same")}
        ids = tuple(change.id for change in plan.changes if change.path in done)
        if ids:
            self._journal.append(
                Undone(
                    secrets.token_hex(6),
                    ids,
                    tuple(restored),
                    is_redo=bool(plan.redoes),
                    redoes=plan.redoes,
                    is_silent=is_silent,
                )
            )
        self._last = None
        return UndoResult(
            tuple(place_of(Path(file.path), self._folder).display for file in restored),
            tuple(sorted(kept)),
            tuple(file.display for file in plan.of("lost")),
            tuple(failed),
            tuple(f"{record.command} ({record.reason})" for record in plan.commands),
            tuple(file.display for file in plan.files if file.is_reduced and file.path in done),
        )

    def _restore(self, file: PlannedFile, *, is_redo: bool) -> None:
        place, target, current = place_of(Path(file.path), self._folder), file.target, file.current
        now = self._store_state(place)
        if now == target:
            # It is another name of a file that was restored.
            return
        if now != current:
            raise ToolError(f"{file.display} was changed meanwhile")
        if target is None:
            remove_path(place, [] if is_redo else [Path(folder) for folder in file.folders])
            return
        data = self._journal.load(target.digest) if target.digest is not None else None
        if data is None and target.kind != "folder":
            raise ToolError(f"{file.display}: its earlier content is missing")
        is_chmod = _is_chmod(current, target)
        if current is not None and not is_chmod and (target.kind, current.kind) != ("file", "file"):
            remove_path(place)
        if target.kind == "folder":
            restore_folder(place, target.mode)
        elif is_chmod:
            set_mode(place, target.mode)
        elif target.kind == "link":
            restore_link(place, data or b"")
        else:
            replace_file(place, data or b"", Context(place.root), target.mode)

    def _take_note(self) -> str:
        """Return a note for the model on files that were restored since it was last informed."""
        records = self._journal.read()
        start = next((at for at in reversed(range(len(records))) if isinstance(records[at], Informed)), -1)
        news = [record for record in records[start + 1 :] if isinstance(record, Undone) and not record.is_silent]
        paths = dict.fromkeys(
            place_of(Path(file.path), self._folder).display for record in news for file in record.files
        )
        if not paths:
            return ""
        self._journal.append(Informed())
        return f"[since the last message, the user has restored other versions of these files: {', '.join(paths)}]"


class _CallRecorder(ChangeRecorder):
    """Records the changes of one call. A record that can't be written is reported, and does not stop the call."""

    def __init__(self, checkpoints: Checkpoints, call: str, tool: str) -> None:
        self._checkpoints = checkpoints
        self._call = call
        self._tool = tool

    def before_write(self, path: Path, root: Path, data: bytes, mode: int, folders: Sequence[Path] = ()) -> None:
        try:
            self._checkpoints.record_write(self._call, self._tool, path, root, data, mode, folders)
        except (OSError, ToolError, UnicodeEncodeError) as error:
            self._checkpoints.add_failure(error)

    def before_command(self, command: str) -> Callable[[], None]:
        try:
            finish = self._checkpoints.start_command(self._call, command)
        except OSError as error:
            self._checkpoints.add_failure(error)
            return lambda: None

        def end() -> None:
            try:
                finish()
            except OSError as error:
                self._checkpoints.add_failure(error)

        return end


def _undone_ids(records: Iterable[Record]) -> set[str]:
    ids: set[str] = set()
    for record in records:
        if isinstance(record, Undone):
            ids = ids - set(record.changes) if record.is_redo else ids | set(record.changes)
    return ids


def _is_same(one: FileState | None, other: FileState | None) -> bool:
    """Return whether two states are equal; a content that was not stored is equal to no other."""
    return one == other and (one is None or one.digest is not None or one.kind == "folder")


def _is_chmod(current: FileState | None, target: FileState) -> TypeGuard[FileState]:
    """Return whether only the mode differs."""
    return current is not None and _is_same(msgspec.structs.replace(current, mode=target.mode), target)

"""A pytest plugin: a test that leaves a file, a process or an open file behind fails itself, not its neighbours.

Each test process has a working folder and a folder for temporary files of its own. After each test both must be empty,
no file may lie beside its `tmp_path`, and no child process may be alive. If more files, pipes or sockets are open than
before, or a process was started, garbage is collected: an unclosed one fails this test and not a later one. Leftovers
are removed, except in the checkout, and the teardown of the test fails. The checkout is shared by the workers of xdist,
so its top folder is compared after each test only without them. The whole tree is compared at the end of the run, which
then fails and names the tests that ran when the file was created.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_OPEN_FILES = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_CLOCK_TICK = 0.05  # the time of a file may be older than the clock by so much
_IGNORED = re.compile(
    r"(\.venv.*|\.git|\.cache|\.hypothesis|\.pytest_cache|\.ruff_cache|\.import_linter_cache|\.idea|\.vscode|\.DS_Store"
    r"|build|dist|__pycache__|.*\.py[cod]|.*\.egg-info|constraints\.new)"
)
_MADE_BY_PYTEST = re.compile(r".*\d|.*current|\.lock")
_kept_processes: set[int] = set()
_kept_names: set[str] = set()


def keep_process(number: int) -> None:
    """Lets this child outlive the test that started it: it serves several tests."""
    _kept_processes.add(number)


def keep_path(path: Path) -> None:
    """Lets this entry of the temporary folder outlive the test that created it."""
    _kept_names.add(path.name)


class LeakCheck:
    """Both checks, as hooks: after each test, and after the run."""

    def __init__(self, config: pytest.Config, *, grace: float = 10.0) -> None:
        self._grace = grace
        self._is_worker = hasattr(config, "workerinput")
        self._is_controller = not self._is_worker and bool(config.getoption("numprocesses", None))
        self._checkout = config.rootpath
        self._first_folder = Path.cwd()
        self._folder = self._working = self._temporary = self._first_folder
        self._children: set[int] = set()
        self._has_new_process = False
        self._open_files = 0
        self._top: set[str] = set()
        self._tree: set[str] = set()
        self._times: list[tuple[float, float, str]] = []
        self._new: list[str] = []

    def pytest_sessionstart(self) -> None:
        if not self._is_worker:
            self._tree = set(_list_tree(self._checkout))
            self._top = _list_names(self._checkout)
        if not self._is_controller:
            self._create_folders()
            self._children = _list_children()
            self._open_files = _count_open_files()

    def _create_folders(self) -> None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # `tmp_path` stays where it was
        self._folder = Path(tempfile.mkdtemp(prefix="segue-test-")).resolve()
        self._working, self._temporary = self._folder / "work", self._folder / "tmp"
        self._working.mkdir()
        self._temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._temporary)

    # ----------------------------------------------------------------------------------------------- after each test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None]:
        os.chdir(self._working)
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        try:
            yield
        finally:
            leaks = [*self._find_processes(), *self._find_files(item), *self._find_unclosed()]
        if leaks:
            pytest.fail("the test left behind: " + ", ".join(leaks), pytrace=False)

    def _find_processes(self) -> Iterator[str]:
        children = _list_children()
        self._has_new_process = not children <= self._children
        if not self._has_new_process:
            return
        for number in self._wait_for_end(children - self._children - _kept_processes):
            with suppress(OSError):
                command = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                os.kill(number, signal.SIGKILL)
                os.waitpid(number, 0)
                yield f"process {number} ({command.strip()})"
        self._children = _list_children()

    def _wait_for_end(self, children: set[int]) -> set[int]:
        """Those that stay alive; a process that is about to end is given time to."""
        deadline = time.monotonic() + self._grace
        while (children := {number for number in children if _is_alive(number)}) and time.monotonic() < deadline:
            time.sleep(0.01)
        return children

    def _find_unclosed(self) -> Iterator[str]:
        before, self._open_files = self._open_files, _count_open_files()
        if self._open_files <= before and not self._has_new_process:
            return
        found: list[str] = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda raised: found.append(str(raised.exc_value))
        try:
            gc.collect(1)  # the objects of one test are young, if it was short
            self._open_files = _count_open_files()
            if self._open_files > before:
                gc.collect()
                self._open_files = _count_open_files()
                gc.freeze()  # the next of these looks through new objects only
        finally:
            sys.unraisablehook = hook
        yield from found

    def _find_files(self, item: pytest.Item) -> Iterator[str]:
        for path in [*self._list_leaked(item)]:
            if path.parent == self._checkout:
                self._top.add(path.name)  # reported once; it may be a file that you just created
            else:
                _remove(path)
            yield str(path)

    def _list_leaked(self, item: pytest.Item) -> Iterator[Path]:
        yield from (self._working / name for name in _list_names(self._working))
        yield from (self._temporary / name for name in _list_names(self._temporary) if name not in _kept_names)
        if not self._is_worker:
            new = _list_names(self._checkout) - self._top
            yield from (self._checkout / name for name in new if not _IGNORED.fullmatch(name))
        if own := (getattr(item, "funcargs", None) or {}).get("tmp_path"):
            beside = (name for name in _list_names(own.parent) if not _MADE_BY_PYTEST.fullmatch(name))
            yield from (own.parent / name for name in beside)

    # ------------------------------------------------------------------------------------------------- after the run

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_worker:
            self._times.append((report.start, report.stop, report.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        os.chdir(self._first_folder)
        if not self._is_worker and not os.environ.get("SEGUE_SNAPSHOTS"):
            self._new = sorted(set(_list_tree(self._checkout)) - self._tree)
        if self._new and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._new:
            terminalreporter.section("new files in the checkout", red=True)
        for path in self._new:
            terminalreporter.line(path)
            with suppress(OSError):
                created = (self._checkout / path).lstat().st_ctime
                during = {name for start, stop, name in self._times if start - _CLOCK_TICK <= created <= stop}
                for name in sorted(during):
                    terminalreporter.line(f"    created during {name}")

    def pytest_unconfigure(self) -> None:
        os.chdir(self._first_folder)
        if self._folder != self._first_folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _count_open_files() -> int:
    return len(_list_names(_OPEN_FILES))


def _list_names(folder: Path | str) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def _list_children() -> set[int]:
    """The child processes of all threads; none where the system does not list them."""
    found: set[int] = set()
    with suppress(FileNotFoundError):
        for task in _list_names("/proc/self/task"):
            with suppress(OSError):  # a thread that has just ended
                file = os.open(f"/proc/self/task/{task}/children", os.O_RDONLY)
                try:
                    found.update(map(int, os.read(file, 65_536).split()))
                finally:
                    os.close(file)
    return found


def _is_alive(number: int) -> bool:
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def _list_tree(root: Path) -> Iterator[str]:
    """Every path in the checkout but for caches and environments."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not _IGNORED.fullmatch(name)]
        place = folder[len(str(root)) + 1 :]
        names = [*folders, *(name for name in files if not _IGNORED.fullmatch(name))]
        yield from (f"{place}/{name}" if place else name for name in names)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

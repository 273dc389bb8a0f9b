"""`make templates`: the models' own chat templates, out of a source package on PyPI into a cache that git ignores.

Nothing is built, and nothing of it becomes part of the project. Without a network a note has the reason instead, and
the tests that need the templates skip with it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_PINS = Path(__file__).with_name("llama-cpp-python.txt")
_CACHE = Path(__file__).parents[2] / ".cache" / "templates"
_INSIDE = "/vendor/llama.cpp/models/templates/"

FOLDER: Path = _CACHE / hashlib.sha256(_PINS.read_bytes()).hexdigest()[:12]
"""Where the templates are, if they are. Other pins have another folder."""

_NOTE = _CACHE / "why-not.txt"
_WAIT = 300


def missing_reason() -> str:
    """The reason why there are no templates; empty if there are."""
    if FOLDER.is_dir():
        return ""
    return _NOTE.read_text("utf-8") if _NOTE.is_file() else "no templates yet: make templates"


def _download(folder: str) -> Path:
    """The source package. pip asks its build backend for the name and version, and goes no further than that."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--timeout=20", "--retries=2", "download"]
    arguments = ["--quiet", "--no-deps", "--no-binary=:all:", f"--dest={folder}", f"--requirement={_PINS}"]
    subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, timeout=_WAIT)
    (package,) = Path(folder).glob("*.tar.gz")
    return package


def _unpack(package: Path, folder: Path) -> int:
    """Each file by its bare name, whatever path the archive gives it; how many they were."""
    count = 0
    with tarfile.open(package) as archive:
        for member in archive:
            if member.isfile() and _INSIDE in member.name and member.name.endswith(".jinja"):
                content = archive.extractfile(member)
                assert content is not None
                (folder / Path(member.name).name).write_bytes(content.read())
                count += 1
    return count


def _last_line(error: BaseException) -> str:
    """The error in one line: pip's last line of output, if any."""
    lines = error.stderr.strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else []
    return next((line for line in lines if line.startswith("ERROR")), str(error))


def main() -> None:
    if FOLDER.is_dir():
        return
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
        unpacked = Path(folder) / "templates"
        unpacked.mkdir()
        try:
            count = _unpack(_download(folder), unpacked)
        except (OSError, subprocess.SubprocessError, tarfile.TarError) as error:
            _NOTE.write_text(f"the models' templates could not be downloaded: {_last_line(error)}", "utf-8")
            print(f"{missing_reason()}\nthe tests that need them will be skipped", file=sys.stderr)
            return
        if count == 0:
            sys.exit("the source package has no templates any more where they were")
        shutil.move(unpacked, FOLDER)
    _NOTE.unlink(missing_ok=True)
    print(f"{count} chat templates in {FOLDER.relative_to(_CACHE.parents[1])}")


if __name__ == "__main__":
    main()

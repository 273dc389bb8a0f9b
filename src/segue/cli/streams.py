"""Reads and writes files, stdin, stdout and stderr.

Input is read whole, output is written in chunks. A file is replaced atomically.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TextIO

import click

from segue import private_files
from segue.errors import InputError, format_os_error

STDIO = "-"
FOLDER_GONE = "the current folder no longer exists; change to another one"
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Errors that another file name would fix; others (a full disk, a broken device) are failures.
_PATH_ERRNOS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG}
# The paths of errors about options, not about the input.
_ARGUMENTS = frozenset({"api", "profile", "source", "target", "tool_format"})


class BadInputError(click.ClickException, InputError):
    """The input can't be read or is invalid."""

    exit_code = 2


class WriteError(click.ClickException):
    """Writing to a file or stdout failed."""

    exit_code = 1


class OutputPathError(WriteError):
    """The output path is wrong; another one would work."""

    exit_code = 2


def read(
    file: str, *, text: bool = True, expected: str = "a JSON object", required: bool = True, allow_nul: bool = False
) -> bytes:
    """Read a file, or stdin for `-`; raises for empty input, a byte order mark and binary data.

    Without `text` only empty input raises; without `required` empty input is fine; with `allow_nul` NUL characters are
    text. `expected` describes the input in messages.
    """
    data = _read_stdin() if file == STDIO else _read_file(file)
    name = format_name(file)
    if required and (not data or data.isspace()):
        raise BadInputError(f"{name} is empty; expected {expected}")
    if not text:
        return data
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise BadInputError(f"{name} begins with a {encoding} byte order mark; save it as UTF-8 without one")
    if not allow_nul and b"\x00" in data[:4096]:
        raise BadInputError(f"{name} is binary data; expected {expected} in UTF-8")
    return data


def format_name(file: str) -> str:
    """Return the name of an input for messages."""
    return "stdin" if file == STDIO else file


@contextlib.contextmanager
def name_input(file: str) -> Generator[None]:
    """Prepend the name of the input file to an `InputError` about its content."""
    from segue.errors import UndetectedApiError

    try:
        yield
    except BadInputError:
        # It names the file already.
        raise
    except InputError as error:
        if file == STDIO or error.path in _ARGUMENTS:
            raise
        path = f"{file}: {error.path}" if error.path else file
        if isinstance(error, UndetectedApiError):
            raise UndetectedApiError(error.reason, path=path) from None
        raise InputError(error.message, path=path) from None


def _read_file(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInputError(f"can't read {file}: {format_os_error(error)}") from error


def _read_stdin() -> bytes:
    # stdin is None where it was closed before the start (`<&-`).
    stdin = getattr(sys, "stdin", None)
    if stdin is None:
        raise BadInputError("stdin is closed; name a file")
    if stdin.isatty():
        print_message("reading from the terminal; end with Ctrl-D, or name a file")
    try:
        return stdin.buffer.read()
    except OSError as error:
        raise BadInputError(f"can't read stdin: {format_os_error(error)}") from error


def write(*chunks: bytes | str) -> None:
    """Write to stdout and flush, so that a failure is raised here and not at exit.

    Bytes are JSON, whole or in parts; for a terminal they are escaped.
    """
    write_all(chunks)


def write_all(chunks: Iterable[bytes | str]) -> None:
    """Write chunks to stdout as they are made, and flush. Bytes are escaped for a terminal."""
    stdout = getattr(sys, "stdout", None)
    if stdout is None:
        raise WriteError("can't write to stdout: it is closed")
    has_text = True
    for chunk in chunks:
        if isinstance(chunk, str):
            stdout.write(chunk)
            has_text = True
            continue
        if has_text:
            stdout.flush()
            has_text = False
        stdout.buffer.write(escape_json_for(chunk, stdout))
    stdout.flush()


@contextlib.contextmanager
def report_if_unwritten(what: str, *names: str) -> Generator[None]:
    """If the result can't be written to stdout, print to stderr that the action itself succeeded, and raise."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, WriteError):
        print_message(f"{what}, although the output could not be written: {', '.join(names)}")
        raise


def discard_stdout() -> None:
    """Redirect stdout to the null device after a failed write; otherwise Python flushes again at exit and fails."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def print_message(message: str) -> None:
    """Print one line to stderr."""
    with contextlib.suppress(OSError):
        click.echo(f"segue: {format_line_for(message, sys.stderr)}", err=True)


def format_line_for(text: str, stream: TextIO | None) -> str:
    """Put a text on one line; for a terminal it is sanitized too."""
    if not is_terminal(stream):
        return one_line(text)
    from segue.view.sanitize import sanitize_line

    return sanitize_line(text)


def escape_json_for(data: bytes, stream: TextIO | None) -> bytes:
    """Return JSON as it is; for a terminal, characters that are not printable are escaped."""
    if not is_terminal(stream):
        return data
    from segue.view.sanitize import escape_json

    return escape_json(data)


def replace_file(file: str, data: bytes | Iterable[bytes], *, private: bool = False) -> None:
    """Write a temporary file beside the target and rename it; devices and pipes are written directly.

    `data` can be chunks, written as they are made. With `private` a new file is readable by its owner only.
    """
    with translate_write_errors(file):
        target = Path(os.path.realpath(file))
        status = target.stat() if target.exists() else None
        if status is None:
            private_files.replace(target, data, mode=0o600 if private else None)
        elif stat.S_ISREG(status.st_mode):
            private_files.replace(target, data, mode=stat.S_IMODE(status.st_mode))
        else:
            with target.open("wb") as stream:
                stream.writelines((data,) if isinstance(data, bytes) else data)


@contextlib.contextmanager
def translate_write_errors(file: str | Path) -> Generator[None]:
    """Raise `WriteError` for what the system reports about a file that is written."""
    try:
        yield
    except (OSError, ValueError) as error:
        wrong = isinstance(error, ValueError) or error.errno in _PATH_ERRNOS
        raise (OutputPathError if wrong else WriteError)(f"can't write {file}: {format_os_error(error)}") from error


def one_line(text: str) -> str:
    """Return a text on one line: whitespace becomes single blanks, control characters are escaped."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", " ".join(text.split()))


def has_working_folder() -> bool:
    """Return whether the working folder still exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def is_same_file(path: str, other: str | TextIO | None) -> bool:
    """Return whether a path and another path, or an open stream, are the same file."""
    try:
        found = Path(other).stat() if isinstance(other, str) else os.fstat(other.fileno()) if other else None
        return found is not None and os.path.samestat(Path(path).stat(), found)
    except (OSError, ValueError):
        return False


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; a stream that was closed before the start is None."""
    return stream is not None and stream.isatty()


def supports_colour(stream: TextIO | None = None) -> bool:
    """Return whether to use colour on a stream (default stdout): a terminal, not dumb, and NO_COLOR unset."""
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")

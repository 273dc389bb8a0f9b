"""Recorded exchanges: one JSON file for each request with its response.

Files are written whole or not at all, and only their owner can read them. Their names begin with a number, so that the
order of the names is the order of the requests.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from segue import private_files
from segue.errors import InputError, format_os_error

_SUFFIX = ".json"
_OWNER_ONLY_FOLDER = 0o700


class Binary(Struct, frozen=True):
    """Bytes that are not UTF-8 text, in Base64."""

    base64: bytes


Piece = str | Binary
"""Bytes of a body: text, or Base64."""


class RecordedBody(Struct, frozen=True, omit_defaults=True):
    """The body of a request: JSON, other text, or the SHA-256 of bytes that are not text. All are unset without one."""

    json: Any = UNSET
    text: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET


class RequestPart(Struct, frozen=True):
    """The request. On a port with all APIs, `path` is the path below the API's prefix."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: RecordedBody = RecordedBody()


class ResponsePart(Struct, frozen=True, omit_defaults=True):
    """The response. `chunks` are those of a chunked response, `body` is any other one.

    `broken`: the connection was closed before the end, by the provider or by the client.
    """

    status: int
    headers: list[tuple[str, str]]
    body: Piece | UnsetType = UNSET
    chunks: list[Piece] | UnsetType = UNSET
    broken: bool = False

    @property
    def pieces(self) -> list[bytes]:
        pieces = [] if self.body is UNSET else [self.body]
        return [decode_piece(piece) for piece in (pieces if self.chunks is UNSET else self.chunks)]


class Recording(Struct, frozen=True):
    """One exchange, as a file contains it."""

    segue_recording: Literal[1]
    """The version of the format."""
    api: str
    request: RequestPart
    response: ResponsePart


def encode_piece(data: bytes) -> Piece:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Binary(data)


def decode_piece(piece: Piece) -> bytes:
    return piece.base64 if isinstance(piece, Binary) else piece.encode()


class RecordingFolder:
    """The folder that exchanges are stored in; it is created if it is missing. Earlier files are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            if not path.is_dir():
                path.mkdir(_OWNER_ONLY_FOLDER)
            with NamedTemporaryFile(dir=path, prefix=".segue-"):
                """The folder is writable."""
            names = [name for name in os.listdir(path) if name.endswith(_SUFFIX)]  # noqa: PTH208  names only
        except FileExistsError:
            raise InputError(f"can't write to {path}: not a directory", path="record") from None
        except (OSError, ValueError) as error:
            raise InputError(f"can't write to {path}: {format_os_error(error)}", path="record") from None
        self._last_number = max(
            (int(number) for name in names if (number := name.partition("-")[0]).isdecimal()), default=0
        )

    def next_number(self) -> int:
        """Return the number of the next request."""
        self._last_number += 1
        return self._last_number

    def store(self, number: int, recording: Recording) -> str:
        """Write the file of a request with this number and return its name."""
        # Another process may record to the same folder.
        name = f"{number:06}-{recording.api}-{secrets.token_hex(3)}{_SUFFIX}"
        data = msgspec.json.format(msgspec.json.encode(recording), indent=1)
        private_files.replace(self._path / name, data + b"\n")
        return name


def read_recordings(folder: Path) -> Sequence[tuple[str, Recording]]:
    """Return the recordings of a folder with their file names, in order. A file that is damaged is an `InputError`."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX and not path.name.startswith("."))
    except (OSError, ValueError) as error:
        raise InputError(f"can't read {folder}: {format_os_error(error)}", path="replay") from None
    if not files:
        raise InputError(f"{folder} has no recordings", path="replay")
    return list(_read_files(files))


def _read_files(files: Sequence[Path]) -> Iterator[tuple[str, Recording]]:
    decoder = msgspec.json.Decoder(Recording)
    for path in files:
        try:
            yield path.name, decoder.decode(path.read_bytes())
        except OSError as error:
            raise InputError(f"can't read {path}: {format_os_error(error)}", path="replay") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a valid recording: {error}", path="replay") from None

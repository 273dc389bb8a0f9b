"""The content encodings of HTTP bodies: clients may compress requests, and providers no responses.

Every request to a provider asks for no encoding, because streams arrive unbuffered only without compression. A body can
be a thousand times as large as what was received, so it is decoded in small pieces whose total size the reader checks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

ACCEPT_ENCODING = {"accept-encoding": "identity"}
"""The request header of all HTTP clients."""
_IDENTITY = "identity"
_MAX_NAME = 40
_PIECE = 1 << 18
# That of Python 3.14, and the package that does the same before it.
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
# RFC 9659: a receiver needs no more than 8 MiB for a body.
_MAX_WINDOW_LOG = 23


class EncodingError(Exception):
    """The body of a request can't be decoded. `status` is 415 for an encoding that is not supported, else 400."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def find_encoding_error(content_encoding: str | None) -> str | None:
    """Return the error text for the value of a `Content-Encoding` header, or None if the response is not encoded."""
    names = _parse_names(content_encoding)
    if set(names) <= {_IDENTITY}:
        return None
    return f"the response has the content encoding {_shorten(names)}, which was not requested"


def _parse_names(content_encoding: str | None) -> list[str]:
    return [name for part in (content_encoding or "").split(",") if (name := part.strip().lower())]


def _shorten(names: list[str]) -> str:
    return "".join(char for char in ", ".join(names) if char.isprintable())[:_MAX_NAME]


# -------------------------------------------------------------------------------------------------------------- decoder


class _Stream(Protocol):
    """One compressed stream, of which a body can have several. `unused_data` is what follows it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_Open: TypeAlias = Callable[[], _Stream]


class BodyDecoder:
    """Decodes the body of a request as it arrives."""

    def __init__(self, name: str, open_stream: _Open, errors: tuple[type[Exception], ...]) -> None:
        self._name = name
        self._open_stream = open_stream
        self._errors = errors
        self._stream: _Stream | None = None

    def decode(self, data: bytes) -> Generator[bytes]:
        """Yield what the next bytes contain, in pieces of bounded size; raise `EncodingError` if they are damaged."""
        while data:
            stream = self._stream = self._stream or self._open_stream()
            try:
                piece = stream.decompress(data, _PIECE)
                yield piece
                data = getattr(stream, "unconsumed_tail", b"")
                while not stream.eof and (data or len(piece) == _PIECE):
                    piece = stream.decompress(data, _PIECE)
                    yield piece
                    data = getattr(stream, "unconsumed_tail", b"")
            except self._errors:
                raise EncodingError(400, f"the body is not valid {self._name}") from None
            if stream.eof:
                data, self._stream = stream.unused_data, None

    def close(self) -> None:
        """Take the end of the body; raise `EncodingError` if it was cut off."""
        if self._stream is not None:
            raise EncodingError(400, f"the body is not valid {self._name}: its end is missing")


def open_decoder(content_encoding: str | None) -> BodyDecoder | None:
    """Return the decoder for the value of a `Content-Encoding` header, or None if the request is not encoded.

    Raise `EncodingError` for an encoding that is not supported, and for several.
    """
    names = [name for name in _parse_names(content_encoding) if name != _IDENTITY]
    if not names:
        return None
    if names in (["gzip"], ["x-gzip"]):
        return BodyDecoder("gzip", lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS), (zlib.error,))
    zstd = _find_zstd()
    if names == ["zstd"] and zstd is not None:
        options = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
        return BodyDecoder("zstd", lambda: cast("_Stream", zstd.ZstdDecompressor(options=options)), (zstd.ZstdError,))
    hint = " (zstd needs Python 3.14 or pip install 'segue[zstd]' in the gateway)" if zstd is None else ""
    raise EncodingError(
        415,
        f"the content encoding {_shorten(names)} is not supported; send the body as it is, or as gzip or zstd{hint}",
    )


def _find_zstd() -> Any:
    for name in _ZSTD_MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None

"""`HttpForm`: how an API is used over HTTP. The defaults are those of OpenAI's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Struct

EVENT_STREAM = "text/event-stream"


class HttpForm(Struct, frozen=True):
    """The URLs, headers and streams of an API."""

    base_version: str = ""
    """A pattern of the version that a base URL may end with, in place of the one that the paths begin with."""
    model_folders: bool = False
    """Whether a model name may begin with a folder, which then takes the place of `models` in a path."""
    models_path: str = "/models"
    """The path of the list of models below the base URL."""
    models_host: tuple[str, str] | None = None
    """The beginning of the host's name, and its replacement for the list of models, if another host serves it."""
    headers: Mapping[str, str] = {}
    """Headers of each request, in addition to the key."""
    caller_headers: tuple[str, ...] = ("openai-beta",)
    """Headers of a caller that the vendor itself needs, and no other provider gets."""
    betas: tuple[tuple[bytes, str], ...] = ()
    """A type of block, and the beta that a body with one needs; the header of betas is the last of a caller's."""
    error_header: str | None = None
    """The header of an error response that has the type of the error."""
    stream_type: str = EVENT_STREAM
    """The media type of a stream."""
    keep_alive: bytes = b": keep-alive\n\n"
    """Bytes that keep a stream open and that clients ignore; empty if there are none."""

    def add_betas(self, headers: Mapping[str, str], body: Sequence[bytes]) -> Mapping[str, str]:
        """Return the headers with the betas that the body needs beside those of the caller."""
        if not self.betas:
            return headers
        name = self.caller_headers[-1]
        given = headers.get(name, "")
        found = {kind for kind in dict(self.betas) if any(_has_block(part, kind) for part in body)}
        needed = [beta for kind, beta in self.betas if kind in found and beta not in given]
        return {**headers, name: ",".join([*([given] if given else []), *needed])} if needed else headers

    def build_path(self, path: str, model: str) -> str:
        """Return a path with the model's name in place of `{model}`."""
        folder, _, name = model.rpartition("/") if self.model_folders else ("", "", model)
        if folder:
            path = path.replace("models/{model}", f"{folder}/{{model}}")
        return path.replace("{model}", quote(name, safe=""))

    def build_models_url(self, url: str) -> str:
        """Return the URL of the list of models with the host that serves it."""
        if self.models_host is None:
            return url
        parts, (prefix, replacement) = urlsplit(url), self.models_host
        host = replacement + parts.netloc.removeprefix(prefix) if parts.netloc.startswith(prefix) else parts.netloc
        return urlunsplit(parts._replace(netloc=host))


def _has_block(body: bytes, kind: bytes) -> bool:
    # Most bodies do not have the word.
    return b'"%b"' % kind in body and re.search(rb'"type"\s*:\s*"%b"' % kind, body) is not None

"""Files in a prompt: attached with `-a FILE`, or named in the text as `@FILE`.

Pictures and PDF files become media blocks, text files are quoted in a fence. A word that starts with `@` is left as it
is, unless it looks like the name of a file: then a missing file is an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from segue.canonical.blocks import Block, Media, Text
from segue.cli.streams import BadInputError, format_os_error
from segue.runtime.tools.text_encoding import image_mime

_MAX_MEDIA = 32 << 20
_MAX_TEXT = 1 << 20
_KINDS = "pictures (PNG, JPEG, GIF, WebP), PDF files and UTF-8 text can be attached"
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_PUNCTUATION = ".,;:!?)]}'\""
# With the extension of a common file type.
_FILE_NAME = re.compile(
    r"[\w./~ -]+\.(?:c|cfg|cpp|css|csv|diff|gif|go|html?|ini|ipynb|java|jpe?g|js|json|jsonl|log|md|patch|pdf|png|py|rb"
    r"|rs|rst|sh|sql|svg|toml|tsx?|txt|webp|xml|ya?ml)"
)
_TICKS = re.compile("`{3,}")


def build_content(
    prompt: str, attached: Mapping[Path, Block], folder: Path, outputs: Sequence[str] = ()
) -> str | tuple[Block, ...]:
    """Return the content of a user message: the text alone, or the text followed by its files and other outputs.

    Mentions are relative to `folder`. A file that is attached and mentioned is added once.
    """
    blocks = dict(attached)
    for file, name in find_mentions(prompt, folder).items():
        if file.resolve() not in blocks:
            blocks[file.resolve()] = read_attachment(file, name)
    added = (*blocks.values(), *map(Text, outputs))
    if not added:
        return prompt
    return (Text(prompt), *added) if prompt.strip() else added


def find_mentions(prompt: str, folder: Path) -> dict[Path, str]:
    """Return the files that a text mentions, each with its name as written."""
    files: dict[Path, str] = {}
    for match in _MENTION.finditer(prompt):
        quoted, word = match.groups()
        for name in [quoted] if quoted else [word, word.rstrip(_PUNCTUATION)]:
            file = folder / Path(name).expanduser()
            if name and _is_file(file):
                files[file] = name
                break
        else:
            name = quoted or word.rstrip(_PUNCTUATION)
            if _FILE_NAME.fullmatch(name) and not (folder / Path(name).expanduser()).exists():
                raise BadInputError(f"there is no file {name}; write it without @ if it is no file")
    return files


def pasted_media(text: str, folder: Path) -> Path | None:
    """Return the file if a pasted text is the path or URL of a picture or PDF file, as dropped on a terminal."""
    name = text.strip().strip("'\"").removeprefix("file://")
    if not name or "\n" in name:
        return None
    for spelling in (name, unquote(name), name.replace("\\ ", " ")):
        file = folder / Path(spelling).expanduser()
        if _is_file(file):
            try:
                with file.open("rb") as opened:
                    return file if detect_media(opened.read(16)) is not None else None
            except OSError:
                return None
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # A name that is too long, or contains a null character.
        return False


def read_attachment(file: Path, name: str) -> Block:
    """Read a file as a block. `BadInputError` names a file that is missing, too large or of another kind."""
    try:
        size = file.stat().st_size
        if size > _MAX_MEDIA:
            raise BadInputError(f"{name} is too large to attach: {size:,} bytes, at most {_MAX_MEDIA:,}")
        data = file.read_bytes()
    except OSError as error:
        raise BadInputError(f"can't read {name}: {format_os_error(error)}") from None
    if (media := detect_media(data)) is not None:
        kind, mime = media
        return Media(kind, mime, data=base64.b64encode(data).decode(), name=file.name if kind == "document" else None)
    if len(data) > _MAX_TEXT:
        raise BadInputError(f"{name} is too large to attach as text: {len(data):,} bytes, at most {_MAX_TEXT:,}")
    try:
        return Text(quote_text(name, data.decode()))
    except UnicodeDecodeError:
        raise BadInputError(f"{name} can't be attached: {_KINDS}") from None


def detect_media(data: bytes) -> tuple[Literal["image", "document"], str] | None:
    """Return the kind and the MIME type of a picture or PDF file, by its first bytes."""
    if (mime := image_mime(data)) is not None:
        return "image", mime
    return ("document", "application/pdf") if data.startswith(b"%PDF-") else None


def quote_text(name: str, text: str) -> str:
    """Return a text under a name, in a fence that the text does not contain."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{name}:\n{fence}\n{text.removesuffix(chr(10))}\n{fence}"

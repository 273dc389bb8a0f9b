"""The rollouts of Codex on disk: plain or compressed files, and the rollout that one continues.

Codex compresses old rollouts if its feature `local_thread_store_compression` is on (`.jsonl.zst`); where both files
exist it uses the plain one. A fork, and a thread that was reverted to an earlier turn, has a rollout that begins where
another one is cut: its first line names that rollout in `history_base`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions import files
from segue.sessions.lines import Excerpt, decode_lines, encode_lines, read_excerpt
from segue.sessions.values import object_of

COMPRESSED = ".zst"
_FOLDERS = ("sessions", "archived_sessions")
_NAME = re.compile(r"rollout-[\dT-]{19}-(?P<thread>[\w-]+?)(?:_(?P<rollout>[\w-]+))?\.jsonl(?:\.zst)?")
# That of Python 3.14, and the packages that do the same before it.
_MODULES = ("compression.zstd", "backports.zstd", "zstandard")
_HEAD_SIZE = 256 * 1024
_MISSING_EXTRA = "compressed sessions need the extra zstd: pip install 'segue[zstd]'"


def list_rollouts(root: Path) -> Iterator[Path]:
    """Yield the rollout of each thread: the newest, and its plain file if there is one."""
    newest: dict[str, Path] = {}
    for path in sorted((root / _FOLDERS[0]).glob("*/*/*/rollout-*.jsonl*"), key=lambda path: path.name):
        found = _NAME.fullmatch(path.name)
        if found is not None and not (path.suffix == COMPRESSED and path.with_suffix("").exists()):
            newest[found["thread"]] = path
        elif path.suffix == ".jsonl":
            # Under a name that Codex does not give.
            newest[path.name] = path
    yield from newest.values()


def is_compressed(name: str) -> bool:
    """Return whether this is the name of a compressed rollout."""
    return name.endswith(COMPRESSED) and _NAME.fullmatch(name) is not None


def thread_id(path: Path) -> str | None:
    """Return the id of the thread that a rollout is of, by its name."""
    found = _NAME.fullmatch(path.name)
    return found["thread"] if found is not None else None


def read_rollout(path: Path) -> bytes:
    """Return the lines of a rollout; of a compressed one, those of the plain file beside it if there is one."""
    path = plain_path(path)
    return _decompress(path) if path.suffix == COMPRESSED else files.read(path)


def plain_path(path: Path) -> Path:
    """Return the file that Codex reads: the plain one, if it exists."""
    plain = path.with_suffix("")
    return plain if path.suffix == COMPRESSED and plain.exists() else path


def read_rollout_excerpt(path: Path) -> Excerpt | None:
    """Read an excerpt; of a compressed rollout its beginning. None if it can't be read, also without the extra."""
    if path.suffix != COMPRESSED:
        return read_excerpt(path)
    try:
        head = _decompress_head(path)
        status = path.stat()
    except (InputError, OSError):
        return None
    return Excerpt(decode_lines(head[: head.rfind(b"\n") + 1]), status.st_size, status.st_mtime_ns // 1000)


def load_rollout(root: Path, path: Path) -> bytes:
    """Return a rollout with the lines of those that it continues, in the form of one that has them itself."""
    data = read_rollout(path)
    seen = {path}
    while (base := _parse_base(data)) is not None:
        name, end = base
        found = _find_rollout(root, name)
        if found is None or found in seen:
            raise InputError(f"this session continues the rollout {name}, which is not there", path=str(path))
        seen.add(found)
        data = _join(decode_lines(read_rollout(found)), end, data)
    return data


def _parse_base(data: bytes) -> tuple[str, int] | None:
    """Return the rollout that a rollout continues, and the number of the first line that it does not have."""
    line = data[: data.find(b"\n") + 1]
    if b"history_base" not in line:
        return None
    base = object_of(_payload(parse_json(line)[0]).get("history_base"))
    name, end = base.get("thread_id"), base.get("end_ordinal_exclusive")
    return (name, end) if isinstance(name, str) and isinstance(end, int) else None


def _payload(value: object) -> dict[str, Any]:
    return object_of(object_of(value).get("payload"))


def _join(before: list[dict[str, Any]], end: int, data: bytes) -> bytes:
    """Return the first line of a rollout, with the base of its own base, the lines before the cut, and its own."""
    first, _, rest = data.partition(b"\n")
    head = parse_json(first)[0]
    meta = _payload(head)
    old = _payload(before[0]) if before and before[0].get("type") == "session_meta" else {}
    del meta["history_base"]
    if "history_base" in old:
        meta["history_base"] = old["history_base"]
    kept = [line for line in before[1 if old else 0 :] if isinstance(at := line.get("ordinal"), int) and at < end]
    return encode_lines([cast("dict[str, Any]", head), *kept]) + rest


def _find_rollout(root: Path, name: str) -> Path | None:
    """Return the file of a rollout by its id, which is the last one in its name."""
    for folder in _FOLDERS:
        for path in (root / folder).glob(f"**/rollout-*{name}.jsonl*"):
            found = _NAME.fullmatch(path.name)
            if found is not None and (found["rollout"] or found["thread"]) == name:
                return plain_path(path)
    return None


def _decompress(path: Path) -> bytes:
    """Return the content of a compressed file; `InputError` if it is damaged or cut off."""
    content, is_whole = _decode_frames(files.read(path), path)
    if not is_whole:
        raise InputError("can't be decompressed: the file is cut off", path=str(path))
    return content


def _decompress_head(path: Path) -> bytes:
    """Return the beginning of a compressed file: at least the first block, if there is one."""
    with path.open("rb") as file:
        return _decode_frames(file.read(_HEAD_SIZE), path)[0]


def _decode_frames(data: bytes, path: Path) -> tuple[bytes, bool]:
    """Return the content of all frames, and whether the last one is complete; `InputError` for anything else."""
    make_decoder, error = _find_decoder(path)
    parts: list[bytes] = []
    while True:
        decoder = make_decoder()
        try:
            parts.append(decoder.decompress(data))
        except error as problem:
            raise InputError(f"can't be decompressed: {problem}", path=str(path)) from None
        data = decoder.unused_data
        if not decoder.eof or not data:
            return b"".join(parts), decoder.eof


def _find_decoder(path: Path) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what makes a decoder of one frame, and the error that it raises; `InputError` without a package for it."""
    for name in _MODULES:
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        # The oldest of the packages has another class for streams.
        is_oldest = hasattr(module.ZstdDecompressor, "decompressobj")
        return module.ZstdDecompressor().decompressobj if is_oldest else module.ZstdDecompressor, module.ZstdError
    raise InputError(_MISSING_EXTRA, path=str(path))

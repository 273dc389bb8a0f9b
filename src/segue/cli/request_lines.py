"""`segue diag req_…`: one request of a gateway, from its usage file or its log."""

from __future__ import annotations

from typing import Any

import msgspec

from segue.cli import streams
from segue.cli.streams import BadInputError
from segue.cli.usage import find_usage_file, open_lines
from segue.gateway.request_log import RequestRecord


def print_request(request_id: str, file: str | None, *, as_json: bool) -> None:
    """Print the lines of a request in this file, else in the usage file of the configuration."""
    name = find_usage_file(file)
    found = _find_lines(request_id, name)
    if not found:
        hint = "" if file else "; one that was rejected is only in the log: segue diag ID FILE"
        raise BadInputError(f"{name} has no line of {request_id}{hint}")
    for line in found:
        if as_json:
            record = line if isinstance(line, RequestRecord) else {"request_id": request_id, "line": line}
            streams.write(msgspec.json.encode(record), b"\n")
        elif isinstance(line, str):
            streams.write(f"{line}\n")
        else:
            fields: dict[str, Any] = {
                name: value for name, value in msgspec.to_builtins(line).items() if value not in (None, "", 0, [], {})
            }
            streams.write("".join(f"{name}: {_format(value)}\n" for name, value in fields.items()))


def _find_lines(request_id: str, file: str) -> list[RequestRecord | str]:
    """Return the lines of a request: JSON, or text as it was logged."""
    found: list[RequestRecord | str] = []
    encoded = request_id.encode("utf-8", "surrogateescape")
    with open_lines(file) as lines:
        for data in lines:
            if encoded not in data:
                continue
            try:
                record = msgspec.json.decode(data, type=RequestRecord)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                line = data.decode(errors="replace").strip()
                found += [line] if line.startswith(f"{request_id};") else []
            else:
                found += [record] if record.request_id == request_id else []
    return found


def _format(value: str | float | list[str] | dict[str, int]) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{number} {name}" for name, number in value.items())
    return "; ".join(value) if isinstance(value, list) else str(value)

"""The files in `snapshots/`: one for each case, with a column for each target.

One message, item or tool stands on each line. A column that equals an earlier one but for ids, model and the name of
the token limit is stored as a reference to it. `read` returns the same columns that `write` was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.conversations.build import Case

FOLDER = Path(__file__).parent / "snapshots"

Column = dict[str, Any]  # the kinds of the findings, and the body

_ID_KEYS = frozenset({"id", "call_id", "tool_call_id"})
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
# Objects and lists under these keys have one member on each line; an element that has such a key is split as well.
_SPLIT = frozenset({"targets", "body", "messages", "input", "contents", "tools", "toolConfig", "functionDeclarations"})


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read(name: str) -> dict[str, Column]:
    """Return the columns of a case by target; none if it has no file."""
    path = path_of(name)
    stored = json.loads(path.read_text("utf-8"))["targets"] if path.exists() else {}
    return {target: _resolved(entry, stored) for target, entry in stored.items()}


def write(case: Case, columns: Mapping[str, Column]) -> None:
    FOLDER.mkdir(exist_ok=True)
    path_of(case.name).write_text(dumps(case, columns), "utf-8")


def dumps(case: Case, columns: Mapping[str, Column]) -> str:
    """Return the text of a case's file."""
    stored: dict[str, Column] = {}
    for target, column in columns.items():
        whole = {name: columns[name] for name, entry in stored.items() if "same_as" not in entry}
        stored[target] = next(_references(column, whole), column)
    page = {"case": case.name, "source": case.source, "about": case.about, "targets": stored}
    return _text(page, split=True) + "\n"


# ------------------------------------------------------------------------------------------------------- references


def _references(column: Column, whole: Mapping[str, Column]) -> Iterator[Column]:
    """Yield a reference for each of the columns that this one can be made from."""
    for target, other in whole.items():
        ids = dict(zip(_ids(other["body"]), _ids(column["body"]), strict=False))
        reference: Column = {"same_as": target}
        if column["findings"] != other["findings"]:
            reference["findings"] = column["findings"]
        if column["body"].get("model") != other["body"].get("model"):
            reference["model"] = column["body"].get("model")
        if _limit(column["body"]) != _limit(other["body"]):
            reference["limit"] = _limit(column["body"])
        if changed := {old: new for old, new in ids.items() if old != new}:
            reference["ids"] = changed
        if json.dumps(_resolved(reference, whole)) == json.dumps(column):
            yield reference


def _resolved(entry: Column, stored: Mapping[str, Column]) -> Column:
    if "same_as" not in entry:
        return entry
    other = stored[entry["same_as"]]
    body = _with_ids(other["body"], entry.get("ids", {}))
    if "model" in entry:
        body.pop("model", None)
        body = body if entry["model"] is None else {"model": entry["model"], **body}
    if "limit" in entry:
        body = {entry["limit"] if key in _LIMITS else key: value for key, value in body.items()}
    return {"findings": entry.get("findings", other["findings"]), "body": body}


def _limit(body: Mapping[str, Any]) -> str | None:
    return next((key for key in _LIMITS if key in body), None)


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            if key in _ID_KEYS and isinstance(member, str):
                yield member
            else:
                yield from _ids(member)
    elif isinstance(value, list):
        for member in value:
            yield from _ids(member)


def _with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: ids.get(member, member) if key in _ID_KEYS and isinstance(member, str) else _with_ids(member, ids)
            for key, member in value.items()
        }
    return [_with_ids(member, ids) for member in value] if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------------------------ lines


def _text(value: Any, indent: str = "", *, split: bool) -> str:
    """Return JSON on one line, or with one member on each line."""
    if not split or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, dict):
        opening, closing = "{", "}"
        lines = [f"{json.dumps(key)}: {_text(item, inner, split=_is_split(key, item))}" for key, item in value.items()]
    else:
        opening, closing = "[", "]"
        lines = [_text(item, inner, split=_has_split(item)) for item in value]
    return f"{opening}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{closing}"


def _is_split(key: str, value: Any) -> bool:
    return key in _SPLIT or _has_split(value)


def _has_split(value: Any) -> bool:
    return isinstance(value, dict) and any(
        key in _SPLIT and isinstance(member, dict | list) for key, member in value.items()
    )

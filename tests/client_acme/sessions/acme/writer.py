"""Writes sessions of Acme."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from segue.sessions.lines import LineWriter


class AcmeWriter(LineWriter):
    version = "1.0.0"

    def lines(self) -> Iterator[dict[str, Any]]:
        draft = self._draft
        if self._is_new:
            yield {"acme": 1, "id": draft.id, "cwd": draft.cwd, "title": draft.title, **self._parent}
        for item in draft.items:
            self._set_time(item)
            (block,) = item.value["content"]
            yield {"timestamp": self._time, "role": item.value["role"], "block": block}
        if self._signed_copy:
            yield self._signed_copy

    def renamed_lines(self) -> list[dict[str, Any]]:
        head, *others = self._before
        return [{**head, "id": self._draft.id, "cwd": self._draft.cwd, **self._parent}, *others]

"""The check of a body that is rendered in pieces: each piece is checked after its context.

Invariant: the verdict is that on the whole body. Where the windows alone do not prove it, the whole body is checked.
"""

from __future__ import annotations

from typing import cast

from segue._check import check
from segue._literals import Api
from segue.conformance.rule import Verdict
from segue.conversion.pieces import Piece
from segue.store.body import StoredBody
from segue.wire.registry import find_wire_or_server


class WindowChecker:
    """Checks the windows of one body. Violations of its fields, the same in all windows, are those of the body."""

    def __init__(self, api: str, model: str | None) -> None:
        self._api: Api = cast("Api", api)
        self._model = model
        self._conversation_key = find_wire_or_server(api, argument="target").conversation_key
        self._verdict: Verdict | None = None
        self._is_proven = True
        # Digests of the ids of all calls: ids that are unique in each window may still be repeated.
        self._ids: set[int] = set()

    def add(self, piece: Piece) -> None:
        """Check a piece after its context."""
        if not self._is_proven:
            return
        found = check(piece.window, self._api, model=self._model)
        ids = {hash(projected) for _, projected in piece.report.emitted_calls}
        self._is_proven = (
            self._verdict in (None, found)
            and all(v.path and not v.path.startswith(self._conversation_key) for v in found)
            and len(ids) == len(piece.report.emitted_calls)
            and self._ids.isdisjoint(ids)
        )
        self._verdict = found
        self._ids |= ids

    def verdict(self, body: StoredBody) -> Verdict:
        """Return the verdict on the body."""
        if self._verdict is not None and self._is_proven and body.is_in_pieces:
            return self._verdict
        return check(body.data, self._api, model=self._model)

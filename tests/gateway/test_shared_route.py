"""The file through which the workers of a gateway share its route."""

from __future__ import annotations

from pathlib import Path

import pytest

from segue.gateway.shared_route import SharedRoute


@pytest.mark.parametrize("content", [b'{"models":["\xff"]}', b"", b"[", b'{"models":7}', b"\x00" * 100])
def test_damaged_file_changes_nothing(tmp_path: Path, content: bytes) -> None:
    served: list[tuple[str, ...]] = []

    def override(models: tuple[str, ...]) -> tuple[str, ...]:
        served.append(tuple(models))
        return tuple(models)

    file = tmp_path / "gateway.route"
    route = SharedRoute(override, lambda: None, file)
    file.write_bytes(content)
    route.refresh()
    assert served == []
    assert route.change(["a/b"]) == ("a/b",)
    other = SharedRoute(override, lambda: None, file)
    other.refresh()
    assert served == [("a/b",), ("a/b",)]

"""Stores for the tests of the gateway."""

from pathlib import Path

import psycopg
import pytest

from tests.store.conftest import server

__all__ = ["server"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of a store."""
    if request.param == "sqlite":
        return str(tmp_path / "entries" / "entries.db")
    url: str = request.getfixturevalue("server")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS segue_gateway CASCADE")
    return url

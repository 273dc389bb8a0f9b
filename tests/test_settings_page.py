"""`docs/settings.md`: each setting of the configuration file is on the page; a new one without a text is an error."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct, defstruct
from msgspec.structs import fields

from scripts import settings_page
from segue.cli.settings import Settings
from segue.gateway.settings import GatewaySettings

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"


def structs_in(kind: typing.Any) -> Iterator[type[Struct]]:
    """The structs that a type contains, at any depth."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
        for field in fields(kind):
            yield from structs_in(field.type)
    for argument in typing.get_args(kind):
        yield from structs_in(argument)


def test_each_setting_is_on_the_page() -> None:
    """The names come from the structs alone, so a table that the generator does not know is found too."""
    page = PAGE.read_text("utf-8")
    tables = {*structs_in(Settings), *structs_in(GatewaySettings)}
    assert len(tables) > 10
    names = {field.name for table in tables for field in fields(table)}
    assert [name for name in sorted(names - {"model_tables"}) if f"| `{name}` |" not in page] == []
    known = {struct for struct, _ in settings_page.TABLES.values()}
    assert tables <= known


def test_a_setting_without_a_text_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    larger = defstruct("Larger", [("new_setting", int, 5)], bases=(GatewaySettings,), frozen=True)
    texts = settings_page.TABLES["[gateway]"][1]
    monkeypatch.setattr(settings_page, "TABLES", {"[gateway]": (larger, texts)})
    with pytest.raises(KeyError, match="new_setting"):
        settings_page.settings_page()

"""Every wire package has the same modules, so that a reader of one finds everything in the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import segue
from segue.wire.registry import WIRES

ROOT = Path(segue.__file__).parent / "wire"
WIRE_PACKAGES = [name.replace("-", "_") for name, wire in WIRES.items() if wire.kind == "wire"]
REQUIRED = {"__init__", "errors", "items", "request", "options", "reply", "stream_in", "stream_out"}
OPTIONAL = {"assembler": "what servers stream in many ways: calls of Chat Completions, items of Responses"}
OWN_LIMIT = 3
NOT_COUNTED = {
    "anthropic": {"server_results": "the text of server-tool results; the catalog shares it"},
    "bedrock": {"shapes": "types of the vendor"},
    "gemini": {
        "fields": "types of the vendor",
        "request_types": "types of the vendor",
        "results": "the content of function responses; the catalog shares it",
    },
    "openai_chat": {"reasoning": "the keys of reasoning in messages; messages and stream_in share them"},
    "openai_responses": {
        "foundry": "repairs for a dialect whose server validates types",
        "foundry_types": "types of the vendor",
        "required_fields": "types of the vendor",
        "item_types": "a table of item types; no other API has so many",
        "parts": "content parts of messages and tool outputs; the item types and the catalog share them",
        "stream_items": "incomplete items; stream_in and stream_out share them",
    },
}
LINE_LIMIT = 600


def modules_of(package: str) -> set[str]:
    return {file.stem for file in (ROOT / package).glob("*.py")}


def test_the_packages_are_those_of_the_registry() -> None:
    with_request = {file.parent.name for file in ROOT.glob("*/request.py")}
    assert with_request == set(WIRE_PACKAGES)


@pytest.mark.parametrize("package", WIRE_PACKAGES)
def test_required_modules(package: str) -> None:
    assert not REQUIRED - modules_of(package)


@pytest.mark.parametrize("package", WIRE_PACKAGES)
def test_at_most_three_modules_of_its_own(package: str) -> None:
    own = modules_of(package) - REQUIRED - OPTIONAL.keys() - NOT_COUNTED.get(package, {}).keys()
    assert len(own) <= OWN_LIMIT, sorted(own)


def test_no_module_is_too_long() -> None:
    lengths = {file: len(file.read_text("utf-8").splitlines()) for file in ROOT.rglob("*.py")}
    assert {str(file.relative_to(ROOT)): lines for file, lines in lengths.items() if lines > LINE_LIMIT} == {}

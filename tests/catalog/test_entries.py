"""The shipped catalog equals the original, and its counts are right."""

from __future__ import annotations

from collections import Counter

from segue.wire.catalog.entry import check_payload, load_entries
from segue.wire.catalog.registry import SHAPES, get_entry
from tests.catalog.vendor_catalog import HERE, catalogue, samples

_IDENTITY = {"fabricated": "absent"}


def test_counts() -> None:
    found = catalogue()
    assert len(found) == 185
    assert len(samples()) == 273
    assert Counter(entry["provider_key"] for entry in found) == {
        "openai": 72,
        "azure-foundry": 44,
        "gemini": 29,
        "anthropic": 25,
        "mistral": 13,
        "bedrock": 2,
    }
    assert Counter(entry["role"] for entry in found) == {"output": 81, "call": 76, "call+output": 28}
    seed = [entry for entry in found if entry["in_seed"]]
    assert len(seed) == 60
    undependable = Counter(entry["sdk_correlation"] for entry in seed if entry["sdk_correlation"] != "natural")
    assert undependable == {"nullable": 10, "conflated": 9, "fabricated": 1}
    assert sum(entry.get("variant_of") is not None for entry in found if not entry["in_seed"]) == 11


def test_surfaces_that_no_wire_has() -> None:
    wires = {"Responses", "Responses (beta, multi-agent)", "Chat Completions", "Messages", "generateContent parts"}
    wires |= {"Responses items", "Chat", "Converse"}
    assert sum(entry["surface"] not in wires for entry in catalogue()) == 87


def test_shipped_entries_are_those_of_the_original() -> None:
    shipped = {(entry.provider, entry.wire_type): entry for entry in load_entries()}
    assert len(shipped) == len(catalogue())
    for entry in catalogue():
        ours = shipped[entry["provider_key"], entry["wire_type"]]
        assert (ours.role, ours.family, ours.surface) == (entry["role"], entry["family"], entry["surface"])
        assert ours.discriminator == entry["discriminator"]
        assert ours.identity == _IDENTITY.get(entry["sdk_correlation"], entry["sdk_correlation"])
        assert ours.ids == entry["id_fields"]
        assert list(ours.pairs_with) == (entry.get("pairs_with") or [])
        assert ours.enveloped == bool(entry.get("envelope"))
        assert entry["fields"].keys() <= ours.fields.keys()


def test_every_type_has_a_shape_and_samples() -> None:
    types = {(entry.provider, entry.wire_type) for entry in load_entries()}
    assert {(provider, name) for provider, shapes in SHAPES.items() for name in shapes} == types
    assert {(sample.provider, sample.wire_type) for sample in samples()} == types
    assert {(file.parent.name, file.stem) for file in HERE.glob("samples/*/*.json")} == types


def test_samples_are_valid() -> None:
    for sample in samples():
        check_payload(sample.payload, get_entry(sample.provider, sample.wire_type))

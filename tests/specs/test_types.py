"""The types in `segue.specs` are those of the vendors' SDKs, and each override departs from them for a reason."""

from __future__ import annotations

import pytest

from scripts import generate_specs
from segue.specs.types import find_mismatches, load_types, read_overrides, read_published

_PACKAGES = {
    "gemini": "google.genai",
    "bedrock": "botocore",
    "azure-foundry": "azure.ai.agentserver.responses",
    "openai-responses": "openai",
}


@pytest.mark.parametrize("api", generate_specs.APIS)
def test_types_are_those_of_the_sdk(api: str) -> None:
    pytest.importorskip(_PACKAGES[api])
    written = (generate_specs.FOLDER / f"{api}.json").read_text("utf-8")
    assert written == generate_specs.format_types(generate_specs.APIS[api]()), "run `make specs`"


def test_every_file_has_a_generator() -> None:
    files = {path.name.removesuffix("_overrides.json") for path in generate_specs.FOLDER.glob("*_overrides.json")}
    assert files == generate_specs.APIS.keys() == _PACKAGES.keys()


@pytest.mark.parametrize("api", generate_specs.APIS)
def test_overrides_have_reasons_and_change_something(api: str) -> None:
    published = read_published(api).types
    for override in read_overrides(api):
        assert override.reason.endswith(".")
        assert override.types or override.members or override.optional or override.absent
        for place, spec in override.members.items():
            name, _, member = place.partition(".")
            assert published[name].members.get(member) != spec, place
        for place in override.optional:
            name, _, member = place.partition(".")
            assert member in published[name].required, place
        for place in override.absent:
            name, _, member = place.partition(".")
            assert member in published[name].members, place
            assert member not in published[name].required, place


def test_type_may_refer_to_itself() -> None:
    schema = load_types("gemini")["Schema"]
    assert schema.members["items"] is schema
    (found,) = find_mismatches(schema, {"items": {"items": {"titel": "x"}}})
    assert (found.path, found.kind) == ("items.items.titel", "unknown")

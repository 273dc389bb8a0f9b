"""Scenarios as bodies of Azure Foundry: Responses bodies with typed answers and the service's own ids.

Reasoning is not sent back (AZF-06), so it is left out where the scenario must be valid.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.properties.bodies_responses import ItemBuilder
from tests.properties.scenario import Reply, Scenario

Body = dict[str, Any]


def own_id(name: str) -> str:
    """An id of the service (AZF-07) in the place of another."""
    prefix = name.partition("_")[0]
    return f"{prefix}_0123456789abcdef00{hashlib.sha256(name.encode()).hexdigest()[:32]}"


class _Items(ItemBuilder):
    @staticmethod
    def add_text(reply: Reply) -> Body:
        # AZF-04
        return {"type": "message", **ItemBuilder.add_text(reply)}


def build_foundry_body(scenario: Scenario, model: str | None) -> Body:
    body = _Items(scenario).body(model)
    body.pop("store", None)
    items = [{**item, "id": own_id(item["id"])} if "id" in item else item for item in body["input"]]
    return {**body, "input": items}

"""Settings of a gateway that are valid, but may be mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from segue.bridge.addresses import is_local
from segue.gateway.settings import GatewaySettings


def find_warnings(settings: GatewaySettings) -> Iterator[str]:
    """Yield a line for each route that is never used, for equal names, and for webhooks without TLS."""
    tables: dict[str, Sequence[Any]] = {"routes": settings.routes, "passthrough": settings.passthrough}
    for kind, rows in tables.items():
        names: dict[str, int] = {}
        for index, row in enumerate(rows):
            place = f"gateway.{kind}[{index}]"
            first = next((number for number, one in enumerate(rows[:index]) if one.shadows(row)), None)
            if first is not None:
                yield f"{place} is never used: gateway.{kind}[{first}] comes first and has all of its requests"
            if row.name and names.setdefault(row.name, index) != index:
                other = f"gateway.{kind}[{names[row.name]}]"
                yield f"{place}.name is that of {other}: logs and client keys can't tell them apart"
    for index, row in enumerate(settings.passthrough):
        methods = [method for method in ("GET", "POST", "DELETE") if not row.takes(method, row.path, {})]
        if methods:
            place, what = f"gateway.passthrough[{index}].path", f"{' and '.join(methods)} {row.path}"
            yield f"{place}: {what} is translated and not passed on; always = true passes it on"
    urls = {f"gateway.hooks[{index}].url": hook.url for index, hook in enumerate(settings.hooks)}
    for place, url in {**urls, "gateway.budget_webhook": settings.budget_webhook or ""}.items():
        if url.startswith("http://") and not is_local(url):
            what = "names and budgets of clients" if place.endswith("webhook") else "prompts and replies"
            yield f"{place}: {what} are sent to another machine in clear text; use https://"

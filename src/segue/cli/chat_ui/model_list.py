"""`/model` without a name: for each model the context left, its prices, and what the conversation would lose there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from segue._conversation import Conversation
from segue.bridge.providers import Endpoint
from segue.canonical.request import Usage
from segue.cli.agent import Agent
from segue.cli.chat_ui.styles import Row, wrap
from segue.cli.table import Column, format_table
from segue.errors import SegueError
from segue.view.format import format_short
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = (
    Column(style="class:mark"),
    Column("model", style="class:name"),
    Column("left", is_right=True),
    Column("$ per M", style="class:dim"),
    Column("", style="class:warn", drops=1),
)
_THOUSAND = 1_000
_MAX_NAMES = 3


def list_models(agent: Agent, chat: Conversation, current: Endpoint, width: int) -> list[Row]:
    """Return a row for each model that can be used now, and below them what the conversation would lose with which.

    `chat` is a copy of it, which is rendered.
    """
    endpoints = list(_find_endpoints(agent, current))
    losses = [_find_losses(chat, endpoint) for endpoint in endpoints]
    cells = [
        (
            "▸" if endpoint is current else "",
            sanitize_line(endpoint.name),
            _format_context(agent.context_of(endpoint), chat.tokens),
            _format_price(agent, endpoint),
            f"{len(lost)} lost" if lost else "",
        )
        for endpoint, lost in zip(endpoints, losses, strict=True)
    ]
    rows = format_table(_COLUMNS, cells, width)
    with_models: dict[str, list[str]] = {}
    for endpoint, lost in zip(endpoints, losses, strict=True):
        for text in lost:
            with_models.setdefault(text, []).append(sanitize_line(endpoint.name))
    for text, names in with_models.items():
        line = f"lost with {_join(names, len(endpoints))}: {text}"
        rows += wrap(line, width, "class:dim", indent="     ", first_indent="   ")
    return rows


def _join(names: Sequence[str], count: int) -> str:
    if len(names) > _MAX_NAMES:
        return f"{len(names)} of {count} models"
    return ", ".join(names)


def _find_endpoints(agent: Agent, current: Endpoint) -> Iterator[Endpoint]:
    """Yield the models of the route and the configuration, then the default one of each provider that has a key."""
    settings = agent.providers.config.settings
    names = [
        *(endpoint.name for endpoint in agent.session.route.endpoints),
        *settings.model_names,
        *(name for rule in settings.rules for name in rule.model_names),
        *settings.aliases.values(),
        *(f"{name}/{row.default}" for name, row in agent.providers.by_name.items() if row.default),
    ]
    seen = {current.name}
    yield current
    for name in names:
        try:
            endpoint = agent.endpoint(name)
        except SegueError:
            continue
        if endpoint.name not in seen and not endpoint.lacks_key:
            seen.add(endpoint.name)
            yield endpoint


def _find_losses(chat: Conversation, endpoint: Endpoint) -> Sequence[str]:
    if not chat.messages:
        return ()
    try:
        target: Any = endpoint.api
        report = chat.render(
            target,
            endpoint.model,
            profile=cast("Any", endpoint.profile),
            tool_format=cast("Any", endpoint.tool_format),
            options=chat.options.merge(endpoint.options),
        ).report
    except SegueError as error:
        return (f"can't be sent: {sanitize_line(str(error))}",)
    lost = (finding.message for finding in report.findings if finding.level == "lost")
    # The same for all models, as far as it is.
    return list(dict.fromkeys(sanitize_line(text.replace(report.target, "the model")) for text in lost))


def _format_context(size: int | None, tokens: int) -> str:
    if size is None:
        return ""
    return format_short(size - tokens) if size > tokens else "none"


def _format_price(agent: Agent, endpoint: Endpoint) -> str:
    """Return the prices of a million tokens, in and out."""
    usages = Usage(_THOUSAND, 0), Usage(0, _THOUSAND)
    prices = [agent.providers.cost(endpoint.provider, endpoint.model, usage) for usage in usages]
    return "/".join(f"{_THOUSAND * price:.3g}" for price in prices if price is not None)

"""The usage of a gateway, from the JSON lines of its requests: totals by route, model, client, group or day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from segue.canonical.request import Usage, UsageSum

UsageKey = Literal["route", "model", "client", "group", "day"]
Count = Annotated[int, Meta(ge=0)]
CLIENT_CLOSED_STATUS = 499
"""The status of a request whose client closed the connection."""
_ERROR_STATUS = 400


class UsageLine(Struct, frozen=True):
    """One line of a usage file, as far as the totals need it."""

    route: str
    target: str
    status: int
    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    error: str = ""
    client: str = ""
    group: str = ""
    time: str = ""
    cost: float | None = None

    @property
    def is_error(self) -> bool:
        """Whether the request failed; one that its client cancelled did not."""
        return self.status != CLIENT_CLOSED_STATUS and (self.status >= _ERROR_STATUS or bool(self.error))

    @property
    def usage(self) -> Usage:
        return Usage(self.input, self.output, self.cache_read, self.cache_write)

    def find_key(self, names: Iterable[UsageKey]) -> tuple[str, ...]:
        """Return the values of these keys; days are those of UTC."""
        values = {"model": self.target, "day": self.time[:10]}
        return tuple(values[name] if name in values else getattr(self, name) for name in names)


class UsageTotal(Struct):
    """The totals of the requests with one key."""

    key: tuple[str, ...]
    requests: int = 0
    errors: int = 0
    sum: UsageSum = msgspec.field(default_factory=UsageSum)

    def add(self, line: UsageLine, cost: float | None) -> None:
        self.requests += 1
        self.errors += line.is_error
        if line.input or line.output:
            self.sum.add(line.usage, cost)


class UsageReport(Struct):
    """The totals of a usage file, their sum, and the number of lines that can't be read."""

    totals: list[UsageTotal]
    whole: UsageTotal
    bad_lines: int = 0


def read_usage(
    lines: Iterable[bytes],
    find_cost: Callable[[str, str, Usage], float | None],
    by: Sequence[UsageKey] = ("route", "model"),
    since: str = "",
) -> UsageReport:
    """Add up the lines of a usage file whose time in ISO format is not before `since`.

    `find_cost` returns the cost of a provider's model, or None, for lines that have none.

    A line that can't be read is counted and left out: the last one may be incomplete while a gateway writes it.
    """
    decoder = msgspec.json.Decoder(UsageLine)
    totals: dict[tuple[str, ...], UsageTotal] = {}
    report = UsageReport([], UsageTotal(("total", *[""] * (len(by) - 1))))
    for data in lines:
        if not data.strip():
            continue
        try:
            line = decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            report.bad_lines += 1
            continue
        if line.time < since:
            continue
        key = line.find_key(by)
        provider, _, model = line.target.partition("/")
        cost = find_cost(provider, model, line.usage) if line.cost is None else line.cost
        for total in (report.whole, totals.setdefault(key, UsageTotal(key))):
            total.add(line, cost)
    report.totals = [totals[key] for key in sorted(totals)]
    return report

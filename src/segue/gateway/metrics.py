"""Metrics of a gateway, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from segue.canonical.request import Usage
from segue.gateway.request_log import RequestRecord

Labels = tuple[tuple[str, str], ...]
_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MAX_SERIES, _MAX_HISTOGRAMS = 5000, 200
_CHOSEN_LABELS = ("route", "target", "client", "group", "budget")
_HELP = {
    "segue_requests_total": ("counter", "Requests by API, route, target, status, client and group."),
    "segue_rejected_total": ("counter", "Requests that the gateway itself rejected, by reason, client and group."),
    "segue_tokens_total": (
        "counter",
        "Tokens by target, client, group and kind: input, output, cache_read, cache_write, reasoning.",
    ),
    "segue_cost_total": ("counter", "Dollars that requests cost, by target, client and group."),
    "segue_budget_remaining": (
        "gauge",
        "Dollars of a budget that are neither spent nor reserved, by budget and period.",
    ),
    "segue_budget_alerts_total": ("counter", "Budgets of which 80 % are spent."),
    "segue_findings_total": ("counter", "Findings of conversions by level."),
    "segue_fallbacks_total": ("counter", "Requests that were answered by another target than the first."),
    "segue_requests_active": ("gauge", "Requests that are being answered."),
    "segue_cache_hit_ratio": ("gauge", "Cached input tokens divided by all input tokens, by target."),
    "segue_target_paused": ("gauge", "Whether a target is left out for a while, because it failed."),
    "segue_store_up": ("gauge", "Whether the last use of the store succeeded."),
    "segue_store_failures_total": ("counter", "Uses of the store that failed, by operation."),
    "segue_request_seconds": ("histogram", "Seconds from the request to the end of its response, by target."),
    "segue_first_token_seconds": ("histogram", "Seconds until the first content of a streamed reply, by target."),
    "segue_overhead_seconds": (
        "histogram",
        "Seconds of a request that were spent on neither providers nor its client.",
    ),
}


HELP: Mapping[str, tuple[str, str]] = _HELP
"""The type and the text of each metric."""


class MetricsSnapshot(Struct, frozen=True):
    """The metrics of one process, for another one to add to its own. Gauges have the time when they were set."""

    values: tuple[tuple[str, Labels, float], ...]
    histograms: tuple[tuple[str, Labels, tuple[int, ...], float], ...]
    gauges: tuple[tuple[str, Labels, float, float], ...]
    active: int
    store_up: bool | None


class _Histogram:
    def __init__(self) -> None:
        self.buckets = [0] * (len(_BUCKETS) + 1)
        self.sum = 0.0


class Metrics:
    """All metrics of a process. They belong to one event loop. `store_up` is None without a store.

    `find_paused` returns whether each target is paused, in all processes.
    """

    def __init__(self, find_paused: Callable[[], Mapping[str, bool]] = dict[str, bool]) -> None:
        self.find_paused = find_paused
        self._values: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: defaultdict[str, defaultdict[Labels, _Histogram]] = defaultdict(
            lambda: defaultdict(_Histogram)
        )
        self._gauges: defaultdict[str, dict[Labels, tuple[float, float]]] = defaultdict(dict)
        self.active = 0
        self.store_up: bool | None = None

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Add to a counter. Routes and targets can be names that clients chose, so their number is bounded."""
        values = self._values[name]
        values[_make_key(values, labels)] += amount

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Add to a histogram."""
        rows = self._histograms[name]
        histogram = rows[_make_key(rows, labels, _MAX_HISTOGRAMS)]
        histogram.sum += seconds
        histogram.buckets[sum(seconds > limit for limit in _BUCKETS)] += 1

    def set_gauge(self, name: str, value: float, /, **labels: str) -> None:
        rows = self._gauges[name]
        rows[_make_key(rows, labels)] = time.time(), value

    def add_request(self, record: RequestRecord) -> None:
        """Count a request that has ended, also one that was rejected."""
        who: dict[str, str] = {"client": record.client, "group": record.group}
        status = str(record.status)
        self.count(
            "segue_requests_total", api=record.api, route=record.route, target=record.target, status=status, **who
        )
        if record.reason:
            self.count("segue_rejected_total", reason=record.reason, **who)
        self.observe("segue_request_seconds", record.seconds, target=record.target)
        if record.first:
            self.observe("segue_first_token_seconds", record.first, target=record.target)
        if record.overhead:
            self.observe("segue_overhead_seconds", record.overhead)
        if record.cost:
            self.count("segue_cost_total", record.cost, target=record.target, **who)

    def add_usage(self, record: RequestRecord, target: str, usage: Usage) -> None:
        who = {"client": record.client, "group": record.group}
        for kind in ("input", "output", "cache_read", "cache_write", "reasoning"):
            self.count("segue_tokens_total", getattr(usage, kind), target=target, kind=kind, **who)

    def add_findings(self, levels: Mapping[str, int]) -> None:
        for level, number in levels.items():
            self.count("segue_findings_total", number, level=level)

    def snapshot(self) -> MetricsSnapshot:
        values = [(name, labels, value) for name, row in self._values.items() for labels, value in row.items()]
        histograms = [
            (name, labels, tuple(one.buckets), one.sum)
            for name, row in self._histograms.items()
            for labels, one in row.items()
        ]
        gauges = [(name, labels, *pair) for name, row in self._gauges.items() for labels, pair in row.items()]
        return MetricsSnapshot(tuple(values), tuple(histograms), tuple(gauges), self.active, self.store_up)

    def add(self, other: MetricsSnapshot, *, is_running: bool = True) -> None:
        """Add those of another process, and its gauges while it is running. Of the others the newest counts."""
        for name, labels, value in other.values:
            self._values[name][labels] += value
        for name, labels, buckets, seconds in other.histograms:
            own = self._histograms[name][labels]
            own.buckets = [number + more for number, more in zip(own.buckets, buckets, strict=True)]
            own.sum += seconds
        for name, labels, at, value in other.gauges:
            self._gauges[name][labels] = max(self._gauges[name].get(labels, (0.0, 0.0)), (at, value))
        if is_running:
            self.active += other.active
            if other.store_up is not None:
                self.store_up = other.store_up and self.store_up is not False

    def render(self) -> str:
        """Return all counters in the text format of Prometheus."""
        lines: list[str] = []
        for name, (kind, text) in _HELP.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            lines += self._render_values(name)
        return "\n".join(lines) + "\n"

    def _render_values(self, name: str) -> Sequence[str]:
        if name == "segue_requests_active":
            return [f"{name} {self.active}"]
        if name == "segue_store_up":
            return [] if self.store_up is None else [f"{name} {self.store_up:d}"]
        if name == "segue_target_paused":
            rows = sorted(self.find_paused().items())
            return [f"{name}{_render_labels((('target', target),))} {is_paused:d}" for target, is_paused in rows]
        if name == "segue_cache_hit_ratio":
            return [
                f"{name}{_render_labels((('target', target),))} {ratio:.4f}" for target, ratio in self._hit_ratios()
            ]
        if name in self._gauges:
            rows = sorted(self._gauges[name].items())
            return [f"{name}{_render_labels(labels)} {value:.9g}" for labels, (_, value) in rows]
        if _HELP[name][0] == "histogram":
            rows = sorted(self._histograms[name].items())
            return [line for labels, one in rows for line in _render_histogram(name, labels, one)]
        return [f"{name}{_render_labels(labels)} {value:.15g}" for labels, value in sorted(self._values[name].items())]

    def _hit_ratios(self) -> list[tuple[str, float]]:
        totals: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for labels, value in self._values["segue_tokens_total"].items():
            named = dict(labels)
            totals[named["target"]][named["kind"]] += value
        ratios = sorted(totals.items())
        return [(target, row["cache_read"] / row["input"] if row["input"] else 0.0) for target, row in ratios]


def _make_key(rows: Mapping[Labels, object], labels: Mapping[str, str], limit: int = _MAX_SERIES) -> Labels:
    """Return the key of a series; labels without a value are left out."""
    key = tuple(sorted((label, value) for label, value in labels.items() if value))
    if key not in rows and len(rows) >= limit:
        key = tuple((label, "other" if label in _CHOSEN_LABELS else value) for label, value in key)
    return key


def _render_histogram(name: str, labels: Labels, histogram: _Histogram) -> list[str]:
    lines: list[str] = []
    total = 0
    for limit, number in zip((*map(str, _BUCKETS), "+Inf"), histogram.buckets, strict=True):
        total += number
        lines.append(f"{name}_bucket{_render_labels((*labels, ('le', limit)))} {total}")
    shown = _render_labels(labels)
    return [*lines, f"{name}_sum{shown} {histogram.sum:.6f}", f"{name}_count{shown} {total}"]


def _render_labels(labels: Labels) -> str:
    escaped = [f'{key}="{_escape(value)}"' for key, value in labels]
    return "{" + ",".join(escaped) + "}" if escaped else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

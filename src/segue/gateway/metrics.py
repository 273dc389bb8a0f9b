"""Counters of a gateway, in the text format of Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from segue.canonical.request import Usage
from segue.gateway.request_log import RequestRecord

Labels = tuple[tuple[str, str], ...]
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MAX_SERIES = 5000
_CHOSEN_LABELS = ("route", "target", "client", "group")
_HELP = {
    "segue_requests_total": ("counter", "Requests by API, route, target, status, client and group."),
    "segue_rejected_total": ("counter", "Requests that the gateway itself rejected, by reason, client and group."),
    "segue_tokens_total": ("counter", "Tokens by target and kind: input, output, cache_read, cache_write, reasoning."),
    "segue_budget_alerts_total": ("counter", "Budgets of which 80 % are spent."),
    "segue_findings_total": ("counter", "Findings of conversions by level."),
    "segue_fallbacks_total": ("counter", "Requests that were answered by another target than the first."),
    "segue_requests_active": ("gauge", "Requests that are being answered."),
    "segue_cache_hit_ratio": ("gauge", "Cached input tokens divided by all input tokens, by target."),
    "segue_target_paused": ("gauge", "Whether a target is left out for a while, because it failed."),
    "segue_store_up": ("gauge", "Whether the last use of the store succeeded."),
    "segue_store_failures_total": ("counter", "Uses of the store that failed, by operation."),
    "segue_request_seconds": ("histogram", "Seconds from the request to the end of its response."),
}


class MetricsSnapshot(Struct, frozen=True):
    """The counters of one process, for another one to add to its own."""

    values: tuple[tuple[str, Labels, float], ...]
    buckets: tuple[int, ...]
    seconds: float
    active: int
    store_up: bool | None


class Metrics:
    """All counters of a process. They belong to one event loop. `store_up` is None without a store.

    `find_paused` returns whether each target is paused, in all processes.
    """

    def __init__(self, find_paused: Callable[[], Mapping[str, bool]] = dict[str, bool]) -> None:
        self.find_paused = find_paused
        self._values: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0
        self.active = 0
        self.store_up: bool | None = None

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Add to a counter; labels without a value are left out.

        Routes and targets can be names that clients chose, so their number is bounded.
        """
        values = self._values[name]
        key = tuple(sorted((label, value) for label, value in labels.items() if value))
        if key not in values and len(values) >= _MAX_SERIES:
            key = tuple((label, "other" if label in _CHOSEN_LABELS else value) for label, value in key)
        values[key] += amount

    def add_request(self, record: RequestRecord) -> None:
        """Count a request that has ended, also one that was rejected."""
        who: dict[str, str] = {"client": record.client, "group": record.group}
        status = str(record.status)
        self.count(
            "segue_requests_total", api=record.api, route=record.route, target=record.target, status=status, **who
        )
        if record.reason:
            self.count("segue_rejected_total", reason=record.reason, **who)
        self._seconds += record.seconds
        self._buckets[sum(record.seconds > limit for limit in _BUCKETS)] += 1

    def add_usage(self, target: str, usage: Usage) -> None:
        for kind in ("input", "output", "cache_read", "cache_write", "reasoning"):
            self.count("segue_tokens_total", getattr(usage, kind), target=target, kind=kind)

    def add_findings(self, levels: Mapping[str, int]) -> None:
        for level, number in levels.items():
            self.count("segue_findings_total", number, level=level)

    def snapshot(self) -> MetricsSnapshot:
        values = [(name, labels, value) for name, row in self._values.items() for labels, value in row.items()]
        return MetricsSnapshot(tuple(values), tuple(self._buckets), self._seconds, self.active, self.store_up)

    def add(self, other: MetricsSnapshot, *, is_running: bool = True) -> None:
        """Add the counters of another process, and its gauges while it is running."""
        for name, labels, value in other.values:
            self._values[name][labels] += value
        self._buckets = [own + more for own, more in zip(self._buckets, other.buckets, strict=True)]
        self._seconds += other.seconds
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
        if name == "segue_request_seconds":
            return self._render_histogram(name)
        return [f"{name}{_render_labels(labels)} {value:g}" for labels, value in sorted(self._values[name].items())]

    def _hit_ratios(self) -> list[tuple[str, float]]:
        tokens = self._values["segue_tokens_total"]
        targets = sorted({dict(labels)["target"] for labels in tokens})
        ratios: list[tuple[str, float]] = []
        for target in targets:
            read = tokens.get((("kind", "cache_read"), ("target", target)), 0)
            total = tokens.get((("kind", "input"), ("target", target)), 0)
            ratios.append((target, read / total if total else 0.0))
        return ratios

    def _render_histogram(self, name: str) -> list[str]:
        lines: list[str] = []
        total = 0
        for limit, number in zip((*map(str, _BUCKETS), "+Inf"), self._buckets, strict=True):
            total += number
            lines.append(f'{name}_bucket{{le="{limit}"}} {total}')
        return [*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {total}"]


def _render_labels(labels: Labels) -> str:
    escaped = [f'{key}="{_escape(value)}"' for key, value in labels]
    return "{" + ",".join(escaped) + "}" if escaped else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

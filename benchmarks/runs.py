"""The speed of `segue.convert` on recorded runs of real clients, as a multiple of the floor.

The floor is msgspec's untyped decode and encode of the same bytes. Before each repetition the memory
is cleared and a text of the first message is changed, so that no repetition profits from another. All targets run in
turns in one process, and the least CPU time of several rounds counts.

    make bench                             all of it, with the peers
    python benchmarks/runs.py --quick      a run of each client, two targets
    python benchmarks/runs.py --write      the tables also into docs/speed.md
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from _measure import floor, format_table, time_once, write_page
from _peers import convert_functions
from _runs import Run, load_runs, vary
from grow import grow

import segue
from segue.conversion import sessions

TARGETS = ("anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mistral", "kimi")
# A body above this size counts as large.
LARGE = 30_000
# Requests before the last one of a long session that are converted, untimed, so that the last one continues them.
EARLIER = 3


class Sample(NamedTuple):
    """One conversion: the size of the body, its CPU time, and that of its floor."""

    size: int
    seconds: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor


def vary_each(request: bytes, count: int) -> list[bytes]:
    """Return the request several times, each as another conversation."""
    return [vary([request], number)[0] for number in range(count)]


def convert(request: bytes, run: Run, target: str) -> Callable[[], object]:
    return lambda: segue.convert(request, source=run.source, target=target).data


def replay(run: Run, target: str, rounds: int) -> float:
    """Return the time of all requests of a run, one after the other, divided by their floors."""
    best = [float("inf")] * len(run.requests)
    floors = best.copy()
    for number in range(rounds):
        sessions.clear()
        for index, request in enumerate(vary(run.requests, number)):
            floors[index] = min(floors[index], time_once(floor(request)))
            best[index] = min(best[index], time_once(convert(request, run, target)))
    return sum(best) / sum(floors)


def convert_cold(run: Run, target: str, rounds: int) -> list[Sample]:
    """Convert each request with an empty memory."""
    samples: list[Sample] = []
    for request in run.requests:
        best = floor_time = float("inf")
        for varied in vary_each(request, rounds):
            sessions.clear()
            floor_time = min(floor_time, time_once(floor(varied)))
            best = min(best, time_once(convert(varied, run, target)))
        samples.append(Sample(len(request), best, floor_time))
    return samples


def convert_known(run: Run, target: str, rounds: int) -> Sample:
    """Convert the first request of a conversation, after two requests of another one with the same settings."""
    sessions.clear()
    for request in vary(run.requests[:2], rounds):
        convert(request, run, target)()
    best = floor_time = float("inf")
    for varied in vary_each(run.requests[0], rounds):
        floor_time = min(floor_time, time_once(floor(varied)))
        best = min(best, time_once(convert(varied, run, target)))
    return Sample(len(run.requests[0]), best, floor_time)


def convert_last(run: Run, target: str, rounds: int, *, size: int = 0) -> float:
    """Convert the last request of a session of 400 items that was converted request by request."""
    requests = grow(run, items=400, size=size, count=EARLIER + 1)
    best = floor_time = float("inf")
    for number in range(rounds):
        sessions.clear()
        *earlier, last = vary(requests, number)
        for request in earlier:
            convert(request, run, target)()
        floor_time = min(floor_time, time_once(floor(last)))
        best = min(best, time_once(convert(last, run, target)))
    return best / floor_time


def read_replies(run: Run, rounds: int) -> tuple[float, float]:
    """Return the cost of `reply` and of opening a `stream`, divided by that of the conversion before."""
    request = grow(run, items=500)[0]
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
    }
    conversion = whole = streamed = float("inf")
    for number in range(rounds):
        sessions.clear()
        (varied,) = vary([request], number)
        conversion = min(conversion, time_once(convert(varied, run, "openai-chat")))
        converted = segue.convert(varied, source=run.source, target="openai-chat")
        whole = min(whole, time_once(lambda converted=converted: converted.reply(reply)))
        converted = segue.convert(varied, source=run.source, target="openai-chat")
        streamed = min(streamed, time_once(converted.stream))
    return whole / conversion, streamed / conversion


# ---------------------------------------------------------------------------------------------------------- the tables


def replay_table(runs: Sequence[Run], targets: Sequence[str], rounds: int) -> str:
    rows = [[run.name, *(f"{replay(run, target, rounds):.2f}" for target in targets)] for run in runs]
    return format_table(["run", *targets], rows)


def cold_table(runs: Sequence[Run], targets: Sequence[str], rounds: int) -> str:
    by_class: defaultdict[tuple[str, bool], list[float]] = defaultdict(list)
    for run in runs:
        for target in targets:
            for sample in convert_cold(run, target, rounds):
                for row in (target, "all"):
                    by_class[row, sample.size > LARGE].append(sample.ratio)
    rows = [
        [target, *(cell for large in (True, False) for cell in _percentiles(by_class[target, large]))]
        for target in (*targets, "all")
    ]
    return format_table(["target", "over 30 kB: p50", "p90", "smaller: p50", "p90"], rows)


def known_table(runs: Sequence[Run], targets: Sequence[str], rounds: int) -> str:
    rows = [[run.name, *(f"{convert_known(run, target, rounds).ratio:.1f}" for target in targets)] for run in runs]
    return format_table(["run", *targets], rows)


def _percentiles(ratios: Sequence[float]) -> list[str]:
    if len(ratios) < 2:
        return ["–", "–"]
    deciles = statistics.quantiles(ratios, n=10)
    return [f"{deciles[4]:.1f}", f"{deciles[8]:.1f}"]


def session_table(runs: Sequence[Run], targets: Sequence[str], rounds: int, *, size: int = 0) -> str:
    rows = [[run.name, *(f"{convert_last(run, target, rounds, size=size):.2f}" for target in targets)] for run in runs]
    return format_table(["run", *targets], rows)


def reply_table(runs: Sequence[Run], rounds: int) -> str:
    rows: list[list[str]] = []
    for run in runs:
        whole, streamed = read_replies(run, rounds)
        rows.append([run.name, f"{whole:.3f}", f"{streamed:.3f}"])
    return format_table(["run with 500 items", "`reply()`", "`stream()`"], rows)


def peer_table(runs: Iterable[Run], rounds: int) -> str:
    """Compare the peers on bodies that they can convert: Chat to Anthropic."""
    peers = {"segue": lambda data: segue.convert(data, source="openai-chat", target="anthropic").data}
    peers |= convert_functions()
    rows: list[list[str]] = []
    for run in runs:
        if run.source not in ("openai-chat", "qwen"):
            continue
        best = dict.fromkeys(peers, float("inf"))
        floors = float("inf")
        request = run.requests[-1]
        for number in range(rounds):
            sessions.clear()
            (varied,) = vary([request], number)
            floors = min(floors, time_once(floor(varied)))
            for name, work in peers.items():
                best[name] = min(best[name], time_once(lambda work=work, varied=varied: work(varied)))
        rows.append([run.name, *(f"{seconds / floors:.1f}" for seconds in best.values())])
    return format_table(["last request, cold", *peers], rows)


def select_clients(runs: Iterable[Run]) -> list[Run]:
    """Return a run of each client and API: the usual one, without odd content."""
    return [run for run in runs if run.name.endswith("-on-anthropic")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a run of each client, two targets, few rounds")
    parser.add_argument("--runs", default="", help="only runs whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/speed.md")
    options = parser.parse_args()
    runs = load_runs(options.runs)
    clients = select_clients(runs)
    rounds = 5 if options.quick else options.rounds
    targets = TARGETS[:2] if options.quick else TARGETS
    if options.quick:
        runs = clients
    parts: list[str] = []

    def show(title: str, text: str, *, on_page: bool = True) -> None:
        if on_page:
            parts.append(f"**{title}**\n\n{text}")
        print(f"\n{title}\n\n{text}", flush=True)

    show("Runs replayed request by request, sum of each run", replay_table(runs, targets, rounds))
    show("The same requests, each with an empty memory", cold_table(runs, targets, rounds))
    known = known_table(clients, targets, rounds)
    show("The first request, after another conversation with the same settings", known, on_page=False)
    show("The last request of a session of 400 items", session_table(clients, targets, rounds))
    if not options.quick:
        show("The same with 1.1 MB", session_table(clients, targets, rounds, size=1_100_000))
    show("`reply()` and `stream()`, × the conversion before", reply_table(clients, rounds), on_page=False)
    if not options.quick:
        show("Peers", peer_table(clients, rounds), on_page=False)
    if options.write:
        write_page("\n\n".join(parts), "runs")


if __name__ == "__main__":
    main()

"""The cost of one event of a stream converted from one API to another, bytes in to bytes out, without a network.

The floor is msgspec's untyped decode of the payloads, one by one, without their framing. All run in turns in one
process, and the least CPU time of several rounds counts. Decoded and converted values are dropped at once, as by a
server that sends them. A stream has one text, two tool calls, a start and an end.

    make bench                                 all of it, with the peer
    python benchmarks/stream.py --quick        every pair with a short stream, few rounds, no peer
    python benchmarks/stream.py --write        also write the tables to docs/speed.md
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from _measure import Work, decode, encode, format_table, measure_all, write_page
from _streams import STREAMS, frame_stream

import segue

READS = {"one event a read": 0, "1.4 kB a read": 1400, "16 kB a read": 16384}
"""Bytes of a stream that are read at a time: as a slow model sends it, as packets arrive, or as they are buffered."""
PEER_PAIRS = (("openai-chat", "anthropic"), ("anthropic", "openai-responses"), ("gemini", "openai-chat"))
"""Source and target API of the streams that the peer converts too."""
PEER_NAMES = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "google",
}
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "go"}],
    "tools": [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("write", "read")
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def encode_payloads(api: str, count: int) -> list[bytes]:
    return [json.dumps(payload, separators=(",", ":")).encode() for payload in STREAMS[api](count)]


def floor(payloads: list[bytes]) -> Work:
    def work() -> None:
        for payload in payloads:
            decode(payload)

    return work


def segue_stream(source: str, target: str, reads: list[bytes]) -> Work:
    """Convert a stream of `source` for a client of `target`."""
    body = segue.convert(REQUEST, source="openai-chat", target=target).body
    converted = segue.convert(body, source=target, target=source)

    def work() -> None:
        stream = converted.stream()
        for read in reads:
            stream.feed(read)
        stream.close()

    return work


def rosetta_stream(source: str, target: str, payloads: list[bytes]) -> Work:
    """Convert payloads to payloads: the peer leaves framing to its gateway."""
    from llm_rosetta.pipeline import ConversionPipeline

    body = segue.convert(REQUEST, source="openai-chat", target=target).body

    def work() -> None:
        pipeline = ConversionPipeline(PEER_NAMES[target], PEER_NAMES[source])
        pipeline.convert_request(dict(body))
        processor = pipeline.create_stream_processor()
        for payload in payloads:
            for event in processor.process_chunk(decode(payload)):
                encode(event)

    work()
    return work


def measure_pairs(count: int, rounds: int) -> str:
    """Return the table of all pairs, one event a read: a row for each source, a column for each target."""
    rows: list[list[str]] = []
    for source in STREAMS:
        payloads = encode_payloads(source, count)
        reads = frame_stream(source, payloads, 0)
        works = [floor(payloads), *(segue_stream(source, target, reads) for target in STREAMS)]
        base, *costs = [seconds / len(payloads) * 1e6 for seconds in measure_all(works, rounds)]
        rows.append([source, f"{base:.2f}", *(f"{cost:.2f} ({cost / base:.1f} ×)" for cost in costs)])
    return format_table(["µs an event, from", "floor", *(f"to {target}" for target in STREAMS)], rows)


def measure_reads(source: str, target: str, count: int, rounds: int) -> list[str]:
    """Return the row of one pair: its cost by the size of the reads, and that of the peer."""
    payloads = encode_payloads(source, count)
    works = [floor(payloads)]
    works += [segue_stream(source, target, frame_stream(source, payloads, size)) for size in READS.values()]
    try:
        works.append(rosetta_stream(source, target, payloads))
    except (ImportError, AttributeError, TypeError, ValueError, KeyError) as error:
        print(f"(not measured: llm-rosetta: {type(error).__name__}: {error})")
    base, *costs = [seconds / len(payloads) * 1e6 for seconds in measure_all(works, rounds)]
    own, peer = costs[: len(READS)], costs[len(READS) :]
    text = [f"{cost:.2f} ({cost / base:.1f} ×)" for cost in own]
    text += [f"{cost:.2f} ({cost / own[-1]:.1f} × segue)" for cost in peer] or ["not installed"]
    return [f"{source} → {target}", f"{base:.2f}", *text]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the conversion of streams against the floor and a peer.")
    parser.add_argument("--quick", action="store_true", help="a short stream, few rounds, no peer")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--write", action="store_true", help="write the tables to docs/speed.md")
    options = parser.parse_args()
    count, rounds = (500, 9) if options.quick else (2000, options.rounds)
    tables = measure_pairs(count, rounds)
    if not options.quick:
        rows = [measure_reads(source, target, count, rounds) for source, target in PEER_PAIRS]
        tables += "\n\n" + format_table(["µs an event", "floor", *READS, "llm-rosetta, payloads alone"], rows)
    print(tables)
    if options.write:
        write_page(tables, "stream")


if __name__ == "__main__":
    main()

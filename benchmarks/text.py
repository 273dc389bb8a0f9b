"""The speed of the text tool formats: plain text, whole calls, and texts made to be slow.

    python benchmarks/text.py              all of it
    python benchmarks/text.py --quick      a quarter of the size

The first table is in MB of text a second; the target for plain text is 20. The second is the time for a text of a
quarter, a half and all of the size, fed at once and in chunks of ten characters, for the slowest texts of each format.
`growth` is the time for the whole divided by that for the quarter: 4 if it is linear, 16 if it is quadratic.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from segue.canonical.blocks import ToolCall
from segue.wire.text.registry import FORMATS
from segue.wire.text.scan import CallScanner
from segue.wire.text.text_format import TextFormat

MB = 1_000_000
PLAIN = "The weather in Paris (France) is mild; 3 < 5, and `x` is code. It is so.\n\n- one\n- two\n"
CALL = ToolCall("get_weather", {"city": "Paris", "days": 3, "detail": {"wind": True, "of": ["a", None]}})
BODIES = (
    "<",
    '"',
    "'",
    "{",
    "[",
    "}",
    "{'a':",
    '{"a":[',
    '\\"',
    '"\\',
    "`",
    "```\n",
    " ",
    "\n",
    "x ",
    ", ",
    "(",
    "</",
    "<a>",
)


def measure(form: TextFormat, text: str, size: int) -> float:
    scanner = CallScanner(form)
    start = time.process_time()
    for place in range(0, len(text), size):
        scanner.feed(text[place : place + size])
    scanner.close()
    return time.process_time() - start


def repeat(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def slow_texts(form: TextFormat) -> Iterator[tuple[str, str]]:
    """Yield the beginning of a text and the rest, which is repeated: parts of calls, alone and followed by others."""
    call = form.render_calls([CALL])
    for stop in sorted({1, *range(5, len(call), max(1, len(call) // 8)), len(call) - 1}):
        yield "", call[:stop]
        yield "", call[:stop] + "\n"
        for body in BODIES:
            yield call[:stop], body
    for body in (*form.markers, *BODIES):
        yield "", body


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of the text tool formats.")
    parser.add_argument("--quick", action="store_true", help="a quarter of the size")
    parser.add_argument("--worst", type=int, default=3, help="how many of the slow texts of a format are shown")
    options = parser.parse_args()
    size = MB // 4 if options.quick else MB

    print(f"{'MB/s':<16}{'plain text':>14}{'in tens':>10}{'calls':>10}")
    for form in FORMATS:
        plain = repeat(PLAIN, 4 * size)
        calls = repeat(f"Let me see.\n{form.render_calls([CALL])}\n", size)
        rates = (
            4 * size / MB / min(measure(form, plain, 65_536) for _ in range(3)),
            size / MB / measure(form, plain[:size], 10),
            size / MB / measure(form, calls, 65_536),
        )
        print(f"{form.name:<16}{rates[0]:>14.0f}{rates[1]:>10.1f}{rates[2]:>10.1f}")

    print(f"\n{'seconds':<16}{'fed':>8}{'1/4':>8}{'1/2':>8}{'1/1':>8}{'growth':>8}  text")
    for form in FORMATS:
        for step in (size, 10):
            small = [
                (measure(form, head + repeat(body, size // 16), step), head, body) for head, body in slow_texts(form)
            ]
            for _, head, body in sorted(small, reverse=True)[: options.worst]:
                times = [measure(form, head + repeat(body, size // part), step) for part in (4, 2, 1)]
                shown = f"{head!r} + {body!r} …" if head else f"{body!r} …"
                fed = "at once" if step == size else "in tens"
                print(
                    f"{form.name:<16}{fed:>8}",
                    *(f"{one:>7.2f}" for one in times),
                    f"{times[2] / times[0]:>7.1f} ",
                    shown,
                )


if __name__ == "__main__":
    main()

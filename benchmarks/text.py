"""How fast text formats are read: plain words, whole calls, and texts made to be slow.

    python benchmarks/text.py              all of it
    python benchmarks/text.py --quick      a quarter of the size

The first table is in MB of text a second; more than 20 of plain words is what is asked for. The second is the time for
a text of a quarter, a half and all of the size, in one piece and in pieces of ten characters, for the worst few texts
of each format: a reader that looks at no text twice takes twice as long for twice the length. `growth` is the time for
the whole by that for the quarter: 4 if it grows with the length, 16 if with its square.
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
WORDS = "The weather in Paris (France) is mild; 3 < 5, and `x` is code. It's said to be so.\n\n- one\n- two\n"
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


def seconds(form: TextFormat, text: str, size: int) -> float:
    scanner = CallScanner(form)
    start = time.process_time()
    for place in range(0, len(text), size):
        scanner.feed(text[place : place + size])
    scanner.close()
    return time.process_time() - start


def repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def slow_texts(form: TextFormat) -> Iterator[tuple[str, str]]:
    """Beginnings of calls, and what is said again and again behind them; or the beginning itself again and again."""
    call = form.render_calls([CALL])
    for stop in sorted({1, *range(5, len(call), max(1, len(call) // 8)), len(call) - 1}):
        yield "", call[:stop]
        yield "", call[:stop] + "\n"
        for body in BODIES:
            yield call[:stop], body
    for body in (*form.markers, *BODIES):
        yield "", body


def main() -> None:
    asked = argparse.ArgumentParser(description="How fast text formats are read.")
    asked.add_argument("--quick", action="store_true", help="a quarter of the size")
    asked.add_argument("--worst", type=int, default=3, help="how many of the slow texts of a format are shown")
    options = asked.parse_args()
    size = MB // 4 if options.quick else MB

    print(f"{'MB/s':<16}{'plain words':>14}{'in tens':>10}{'calls':>10}")
    for form in FORMATS:
        words = repeated(WORDS, 4 * size)
        calls = repeated(f"Let me see.\n{form.render_calls([CALL])}\n", size)
        rates = (
            4 * size / MB / min(seconds(form, words, 65_536) for _ in range(3)),
            size / MB / seconds(form, words[:size], 10),
            size / MB / seconds(form, calls, 65_536),
        )
        print(f"{form.name:<16}{rates[0]:>14.0f}{rates[1]:>10.1f}{rates[2]:>10.1f}")

    print(f"\n{'seconds':<16}{'fed':>8}{'1/4':>8}{'1/2':>8}{'1/1':>8}{'growth':>8}  text")
    for form in FORMATS:
        for step in (size, 10):
            small = [
                (seconds(form, head + repeated(body, size // 16), step), head, body) for head, body in slow_texts(form)
            ]
            for _, head, body in sorted(small, reverse=True)[: options.worst]:
                times = [seconds(form, head + repeated(body, size // part), step) for part in (4, 2, 1)]
                told = f"{head!r} + {body!r} …" if head else f"{body!r} …"
                fed = "at once" if step == size else "in tens"
                print(
                    f"{form.name:<16}{fed:>8}",
                    *(f"{one:>7.2f}" for one in times),
                    f"{times[2] / times[0]:>7.1f} ",
                    told,
                )


if __name__ == "__main__":
    main()

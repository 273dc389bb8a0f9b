"""`make recorded RECORDINGS=DIR`: judge segue by the recorded traffic in a checkout of pydantic-ai.

Prints each difference that is not in `known.toml`, then counts. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.recorded.cassettes import Exchange, read_exchanges
from tests.recorded.judge import judge

KNOWN = Path(__file__).parent / "known.toml"


def run(exchanges: Iterable[Exchange]) -> int:
    rows = [(re.compile(row["line"]), row["reason"]) for row in tomllib.loads(KNOWN.read_text("utf-8"))["known"]]
    tried: Counter[str] = Counter()
    found: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for exchange in exchanges:
        tried[f"{exchange.wire.name}{f' ({exchange.wire.profile})' if exchange.wire.profile else ''}"] += 1
        for difference in judge(exchange):
            reason = next((reason for line, reason in rows if line.search(difference.line)), None)
            if reason is None:
                found[difference.kind] += 1
                print(difference, flush=True)
            else:
                known[reason] += 1
    for title, counts in (("exchanges", tried), ("known differences", known), ("differences", found)):
        print(f"\n{counts.total()} {title}")
        for name, count in counts.most_common():
            print(f"  {count:5} {name}")
    if not tried:
        print("no exchange was found: is this a checkout of pydantic-ai, and does --only fit?", file=sys.stderr)
    return 0 if tried and not found else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make recorded", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of pydantic/pydantic-ai")
    parser.add_argument("--only", default="", help="a part of the names of cassettes, such as test_mistral")
    options = parser.parse_args()
    if not options.checkout.is_dir():
        parser.error(f"{options.checkout} is not a folder")
    sys.exit(run(read_exchanges(options.checkout, options.only)))

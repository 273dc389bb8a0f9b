"""Thoughts that survive a caller of another API: of a loop of three rounds, how many reach the upstream again.

Every SDK on every emulated upstream that signs its reasoning or wants it back, streamed and whole. Prints the number of
thoughts in the last request, and of requests in which thinking had to be switched off. The vendors' SDKs are needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from _measure import format_table  # noqa: E402

try:
    from tests.transport.thoughts import CALLERS, ROUNDS, UPSTREAMS, measure
except ImportError as error:
    print(f"(left out: {error}; the vendors' SDKs are in the environment of `make setup`)")
    sys.exit()


def main() -> None:
    rows: list[list[str]] = []
    whole = requests = switched_off = 0
    for caller in CALLERS:
        row = [caller]
        for upstream in UPSTREAMS:
            found = [measure(caller, upstream, stream=stream) for stream in (False, True)]
            row.append(" ".join(f"{one.thoughts[-1]}/{ROUNDS}" for one in found))
            whole += sum(one.thoughts[-1] == ROUNDS for one in found)
            requests += sum(len(one.thoughts) for one in found)
            switched_off += sum(one.switched_off for one in found)
        rows.append(row)
    print(format_table(["caller, whole and streamed", *UPSTREAMS], rows))
    print(f"\nall thoughts on {whole} of {2 * len(CALLERS) * len(UPSTREAMS)} routes; ", end="")
    print(f"thinking switched off in {switched_off} of {requests} requests")


if __name__ == "__main__":
    main()

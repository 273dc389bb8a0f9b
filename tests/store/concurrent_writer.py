"""A process that writes on command: one line in, one line out.

python -m tests.store.concurrent_writer KIND PLACE SCHEMA CONVERSATION
"""

from __future__ import annotations

import sys

from segue.canonical.blocks import Message, Text
from segue.errors import ConflictError, LeaseError
from segue.store.events import MessageAdded
from tests.store.engines import open_store


def main() -> None:
    kind, place, schema, conversation = sys.argv[1:]
    with open_store(kind, place, schema) as store:
        print("ready", flush=True)
        for line in sys.stdin:
            word, *rest = line.split()
            try:
                if word == "append":
                    events = [
                        MessageAdded(Message("human", (Text(rest[1]),))),
                        MessageAdded(Message("human", (Text(rest[1]),))),
                    ]
                    print("wrote", store.append(conversation, int(rest[0]), events), flush=True)
                else:
                    print("holds", store.acquire(conversation, rest[0], 600).owner, flush=True)
            except ConflictError as error:
                print("conflict", error.actual, flush=True)
            except LeaseError as error:
                print("held", error.owner, flush=True)


if __name__ == "__main__":
    main()

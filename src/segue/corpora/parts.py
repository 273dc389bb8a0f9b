"""`Part`: a group of units with one file of output, and the pure functions that processes and clusters run on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

from msgspec import Struct

from segue.canonical.json import encode_json
from segue.corpora.checks import find_problems
from segue.corpora.formats import find_target
from segue.corpora.output import Settings, Writer, open_writer, render_row
from segue.corpora.reading import UNIT_SIZE, Unit
from segue.corpora.redacting import redact_output
from segue.corpora.rows import Row
from segue.corpora.storage import STATE, Folder
from segue.corpora.turns import build_turns
from segue.corpora.units import Counts, Reject, read_unit, reject
from segue.errors import InputError

DATA = "data"
_FEWEST_PARTS, _SMALLEST_PART, _MOST_UNITS = 64, 2**20, 5000


class Part(Struct, frozen=True):
    """Units whose rows are in one file; `count` is the number of parts."""

    number: int
    count: int
    units: tuple[Unit, ...]

    @property
    def size(self) -> int:
        return sum(unit.size for unit in self.units)

    @property
    def state(self) -> str:
        """The path of the record that this part is complete, in the folder of the output."""
        return f"{STATE}/{self.number:05}.json"

    def place(self, settings: Settings, *, is_folder: bool) -> str:
        """Return the path of the file or folder with the rows, in the folder of the output."""
        suffix = "" if is_folder else f".{settings.container}"
        return f"{DATA}/train-{self.number:05}-of-{self.count:05}{suffix}"


def group_units(units: Sequence[Unit]) -> list[Part]:
    """Return the parts of a corpus: they depend on the units alone, not on how many processes there are."""
    total = sum(unit.size for unit in units)
    size = min(max(total // _FEWEST_PARTS, _SMALLEST_PART), UNIT_SIZE)
    groups: list[list[Unit]] = []
    room = 0
    for unit in units:
        if room <= 0 or len(groups[-1]) >= _MOST_UNITS:
            groups.append([])
            room = size
        groups[-1].append(unit)
        room -= unit.size
    return [Part(number, len(groups), tuple(group)) for number, group in enumerate(groups)]


def convert_unit(
    unit: Unit, settings: Settings, counts: Counts, part: int = 0
) -> Iterator[list[dict[str, Any]] | Reject]:
    """Yield the lines of each row of a unit, and what is rejected."""
    for found in read_unit(unit, counts):
        if isinstance(found, Reject):
            yield found
            continue
        try:
            lines = render_row(found, settings, counts, f"{part:05}-{counts.rows + 1:06}")
        except InputError as error:
            messages = len(found.records)
            counts.messages_in_rows -= messages
            counts.messages -= messages
            yield reject(counts, unit, found.provenance.offset, error.path, error.message, messages)
            continue
        yield lines


def convert_part(part: Part, settings: Settings, out: str) -> Counts:
    """Write the rows of a part and its rejects below a folder; return the counts. Either all is written or nothing."""
    counts = Counts()
    folder = Folder(out)
    is_folder = find_target(settings.target).is_file_per_row
    rejects: list[Reject] = []
    # The file is closed before it takes its place.
    with folder.replacing(part.place(settings, is_folder=is_folder)) as temporary, ExitStack() as opened:
        writer: Writer | None = None
        for unit in part.units:
            for found in convert_unit(unit, settings, counts, part.number):
                if isinstance(found, Reject):
                    rejects.append(found)
                elif is_folder:
                    temporary.mkdir(exist_ok=True)
                    content = b"".join(encode_json(line) + b"\n" for line in found)
                    (temporary / f"{counts.rows:06}.jsonl").write_bytes(content)
                else:
                    writer = writer or opened.enter_context(closing(open_writer(temporary, settings)))
                    writer.write(found)
    counts.verify()
    with folder.replacing(part.state) as temporary:
        temporary.write_bytes(encode_json({"counts": counts, "rejects": rejects}))
    return counts


def measure_part(part: Part) -> Counts:
    """Count what is in the rows of a part, and the rules that they break."""
    counts = Counts()
    for unit in part.units:
        for found in read_unit(unit, counts):
            if isinstance(found, Row):
                turns = build_turns(found)
                counts.count_row(found, turns)
                secrets = redact_output([turn.text for turn in turns.turns])[1]
                counts.count("secret", secrets)
                at = found.provenance
                place = f"{at.file}:{at.line}" if at.line else f"{at.file}: byte {at.offset}"
                for rule in (*find_problems(found, turns), *(["secret"] * secrets.total())):
                    counts.count_problem(rule, place)
    counts.verify()
    return counts

"""`docs/types.md`, generated from the table by `make catalogue`."""

from __future__ import annotations

from collections import Counter

from segue.wire.catalog.table_rows import TypeRow, type_rows
from segue.wire.registry import WIRES

_HEAD = """# Every type of tool call and output

Made by `make catalogue` from the catalogue; `segue formats --types` prints the same, `--json` with all of it.

*Identity* is what the type knows of a call's identity: `natural` (a call id), `nullable` (one that may be missing),
`conflated` (the item's own id, which serves as one), `absent` (none). Last comes what it becomes under the default
policy: on its own API, where there is a wire for it, **itself**; on all others what is named here, and so in requests
what is itself in replies only.
"""


def page() -> str:
    rows = type_rows()
    lines = [_HEAD]
    for provider, count in Counter(row.provider for row in rows).items():
        lines += [
            f"\n## {provider} ({count})\n",
            _line("type", "surface", "role", "family", "identity", "is", "becomes"),
        ]
        lines.append(_line(*["---"] * 7))
        lines += [_cells(row) for row in rows if row.provider == provider]
    return "\n".join(lines) + "\n"


def _cells(row: TypeRow) -> str:
    same_api = [name for name in WIRES if row.by_wire[name].startswith("itself")]
    (cross_api,) = {becoming for becoming in row.by_wire.values() if not becoming.startswith("itself")}
    own = f"{row.by_wire[same_api[0]]} on `{same_api[0]}`" if same_api else "–"
    return _line(f"`{row.wire_type}`", row.surface, row.role, row.family, row.identity, own, cross_api)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")

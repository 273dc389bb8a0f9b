"""Compares the converter with that of an earlier commit: `make compare BASE=COMMIT`.

The earlier one is unpacked from git's history into `.cache`. Both convert the same sessions, each in a process of its
own: recorded runs of clients, the table of conversations, and both with random changes (moved cache markers, edits,
forks, rewinds, late and doubled results, unknown fields), first with an empty memory and then as they grow. Bodies,
reports and converted replies must be equal, between APIs as bytes and same-API as JSON.

    python -m tests.compare COMMIT --sessions 300        fewer sessions
    python -m tests.compare COMMIT --only codex --show   differences of some sessions in full
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import lzma
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "benchmarks" / "data"
KEYS = ("messages", "input", "contents")
TARGETS = ("anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mistral", "kimi", "deepseek")
MODELS: dict[str, tuple[str | None, ...]] = {
    "anthropic": (None, None, "claude-opus-5-1"),
    "gemini": (None, "gemini-3-pro"),
}
POLICIES: tuple[dict[str, str], ...] = ({}, {}, {}, {"reasoning": "text"}, {"ids": "canonical"}, {"pending": "keep"})
Body = dict[str, Any]


# -------------------------------------------------------------------------------------------------------- the sessions


def conversation_key(body: Body) -> str | None:
    return next((key for key in KEYS if isinstance(body.get(key), list)), None)


def load_runs() -> Iterator[tuple[str, str | None, list[Body]]]:
    for path in sorted(RUNS.glob("*.jsonl.xz")):
        yield (
            path.name.partition(".")[0],
            None,
            [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()],
        )


def load_table() -> Iterator[tuple[str, str | None, list[Body]]]:
    from tests.conversations.table import CASES

    for case in CASES:
        yield case.name, case.source, [case.body]


def sessions(count: int, only: str) -> Iterator[Body]:
    """Yield the sessions: the given ones for every target, then changed ones until there are enough."""
    from segue.wire.registry import WIRES

    given = [session for session in (*load_runs(), *load_table()) if only in session[0]]
    for name, source, requests in given:
        for target in WIRES:
            yield {"name": f"{name} → {target}", "source": source, "target": target, "requests": requests}
    chooser = random.Random(7)
    for number in range(count):
        name, source, requests = chooser.choice(given)
        if conversation_key(requests[-1]) is None:
            continue
        target = chooser.choice(TARGETS)
        model = chooser.choice(MODELS.get(target, (None,)))
        changed = change(chooser, requests)
        job = {"source": source, "target": target, "model": model, "policy": chooser.choice(POLICIES)}
        yield {"name": f"{number}: {name} → {target} {model or ''}", **job, "requests": changed}


def change(chooser: random.Random, requests: list[Body]) -> list[Body]:
    """Return a session like this one with some changes, which grows, is forked and rewound."""
    body = json.loads(json.dumps(requests[-1]))
    key = conversation_key(body) or ""
    items: list[Any] = body[key]
    if chooser.random() < 0.6:
        items += repeat(chooser, items, chooser.choice((1, 2, 6)))
    for _ in range(chooser.choice((0, 0, 1, 1, 2, 4))):
        chooser.choice(CHANGES)(chooser, items)
    length = len(items)
    ends = sorted(chooser.randint(1, length) for _ in range(chooser.choice((2, 4, 6)))) if length else [0]
    session: list[Body] = []
    for end in [*ends, length, *([chooser.randint(1, length), length] if length and chooser.random() < 0.4 else [])]:
        sent = json.loads(json.dumps(items[:end]))
        if chooser.random() < 0.15:
            chooser.choice(CHANGES)(chooser, sent)
        if chooser.random() < 0.3:
            mark(chooser, sent[-2:])
        rest = {"metadata": {"n": str(end)}} if chooser.random() < 0.1 else {}
        session.append({**body, key: sent, **rest})
    return session


def repeat(chooser: random.Random, items: list[Any], times: int) -> list[Any]:
    """Return the later items again, with other ids."""
    later = items[min(len(items), 2) :]
    return [
        renumber(json.loads(json.dumps(item)), f"_{n}{chooser.randint(0, 9)}") for n in range(times) for item in later
    ]


def renumber(value: Any, suffix: str) -> Any:
    if isinstance(value, list):
        return [renumber(part, suffix) for part in value]
    if isinstance(value, dict):
        ids = ("id", "call_id", "tool_use_id", "tool_call_id", "toolUseId")
        return {
            key: part + suffix if key in ids and isinstance(part, str) and part else renumber(part, suffix)
            for key, part in value.items()
        }
    return value


def objects_in(value: Any) -> list[Body]:
    own = [value] if isinstance(value, dict) else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return own + [found for part in parts for found in objects_in(part)]


def drop(chooser: random.Random, items: list[Any]) -> None:
    if items:
        del items[chooser.randrange(len(items))]


def double(chooser: random.Random, items: list[Any]) -> None:
    if items:
        at = chooser.randrange(len(items))
        items.insert(chooser.choice((at, len(items))), json.loads(json.dumps(items[at])))


def swap(chooser: random.Random, items: list[Any]) -> None:
    if len(items) > 1:
        at = chooser.randrange(len(items) - 1)
        items[at], items[at + 1] = items[at + 1], items[at]


def delay(chooser: random.Random, items: list[Any]) -> None:
    if items:
        items.insert(chooser.randint(0, len(items)), items.pop(chooser.randrange(len(items))))


def add_key(chooser: random.Random, items: list[Any]) -> None:
    if found := objects_in(items):
        key = chooser.choice(("x_unknown", "name", "status", "is_error", "id", "cache_control", "thoughtSignature"))
        chooser.choice(found)[key] = chooser.choice((None, True, 1, "x", {"type": "ephemeral"}, []))


def remove_key(chooser: random.Random, items: list[Any]) -> None:
    if found := [entry for entry in objects_in(items) if entry]:
        entry = chooser.choice(found)
        del entry[chooser.choice(list(entry))]


def edit_text(chooser: random.Random, items: list[Any]) -> None:
    found = [(entry, key) for entry in objects_in(items) for key, part in entry.items() if isinstance(part, str)]
    if found:
        entry, key = chooser.choice(found)
        entry[key] = chooser.choice(("", " ", "other", entry[key] + " ", "null", "{", "json", "\n\n"))


def mark(chooser: random.Random, items: list[Any]) -> None:
    parts = [part for item in items if isinstance(item, dict) for part in listed(item.get("content"))]
    if parts:
        chooser.choice(parts)["cache_control"] = {"type": "ephemeral"}


def listed(content: Any) -> list[Body]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def insert_message(chooser: random.Random, items: list[Any]) -> None:
    role = chooser.choice(("user", "assistant", "system"))
    is_gemini = any(isinstance(item, dict) and "parts" in item for item in items)
    role = "model" if is_gemini and role == "assistant" else role
    text = chooser.choice(("more", "", "  "))
    items.insert(
        chooser.randint(0, len(items)),
        {"role": role, "parts": [{"text": text}]} if is_gemini else {"role": role, "content": text},
    )


CHANGES = (drop, double, swap, delay, delay, add_key, add_key, remove_key, edit_text, mark, insert_message)


# ---------------------------------------------------------------------------------------------------------- one process


def convert_all(path: str) -> None:
    """Convert the sessions of a file, and print a line for each request."""
    import segue

    clear = find_clear()
    replies = make_replies()
    for line in read_lines(Path(path)):
        session = json.loads(line)
        chosen = {key: session.get(key) for key in ("source", "target", "model")} | (session.get("policy") or {})
        outcomes: list[Any] = []
        data = b""
        clear()
        for number, body in enumerate(session["requests"]):
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
            outcomes.append(outcome(segue, data, chosen, replies if number % 3 == 0 else {}))
        clear()
        outcomes.append(outcome(segue, data, chosen, replies))
        print(json.dumps(outcomes), flush=True)


def find_clear() -> Callable[[], None]:
    """Return the function that empties the memory, wherever the commit has it."""
    names = ("segue.conversion.sessions", "segue.fast")
    module = next(
        name for name in names if importlib.util.find_spec(name.rpartition(".")[0]) and importlib.util.find_spec(name)
    )
    return importlib.import_module(module).clear


def read_lines(path: Path) -> Iterator[str]:
    with path.open() as file:
        yield from file


def outcome(segue: Any, data: bytes, chosen: Body, replies: Body) -> Any:
    try:
        converted = segue.convert(data, **chosen)
        sent = converted.data
        report = converted.report.to_dict()
    except segue.errors.SegueError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    found: Body = {"bytes": hashlib.sha256(sent).hexdigest(), "report": report}
    if os.environ.get("SEGUE_SHOW") or converted.source == converted.target:
        found["body"] = sent.decode()
    for name, reply in replies.items():
        if name == converted.target:
            try:
                found["reply"] = converted.reply_data(reply).decode()
            except segue.errors.SegueError as error:
                found["reply"] = f"{type(error).__name__}: {error}"
    return found


def make_replies() -> dict[str, bytes]:
    call = {"type": "function", "id": "call_1", "function": {"name": "read", "arguments": "{}"}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    message = {"role": "assistant", "content": "So.", "tool_calls": [call]}
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    chat["choices"] = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    use = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    claude = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    claude |= {"content": [{"type": "text", "text": "So."}, use], "usage": {"input_tokens": 1, "output_tokens": 1}}
    bodies = {"openai-chat": chat, "kimi": chat, "mistral": chat, "deepseek": chat, "anthropic": claude}
    return {name: json.dumps(body).encode() for name, body in bodies.items()}


# ------------------------------------------------------------------------------------------------------------ comparing


def unpack(commit: str) -> Path:
    """Return the sources of a commit, unpacked from git's history."""
    commit = subprocess.run(["git", "rev-parse", commit], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folder = ROOT / ".cache" / "compare" / commit.strip()[:12]
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit.strip(), "src"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "src"


def start(source: Path, sessions_path: Path, output: Path, *, show: bool) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}", "PYTHONHASHSEED": "0", "SEGUE_SHOW": "1" if show else ""}
    command = [sys.executable, "-m", "tests.compare", "--convert", str(sessions_path)]
    return subprocess.Popen(command, stdout=output.open("wb"), env=environ, cwd=ROOT)


def compare_outcomes(one: Body, other: Body) -> str | None:
    """Return what differs."""
    if "error" in one or "error" in other:
        return None if one == other else "error"
    same_api = "body" in one and "body" in other
    if one["bytes"] != other["bytes"] and not (same_api and json.loads(one["body"]) == json.loads(other["body"])):
        return "body"
    if one["report"] != other["report"]:
        return "report"
    if one.get("reply") != other.get("reply"):
        return "reply"
    return "spelling" if one["bytes"] != other["bytes"] else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="main", help="the commit to compare with")
    parser.add_argument("--sessions", type=int, default=2000, help="the number of changed sessions")
    parser.add_argument("--only", default="", help="only sessions whose name contains this")
    parser.add_argument("--show", action="store_true", help="print the differences in full")
    parser.add_argument("--convert", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.convert:
        convert_all(options.convert)
        return 0
    base = unpack(options.base)
    folder = ROOT / ".cache" / "compare"
    path = folder / "sessions.jsonl"
    with path.open("w") as file:
        for session in sessions(options.sessions, options.only):
            file.write(json.dumps(session) + "\n")
    outputs = folder / "base.jsonl", folder / "here.jsonl"
    processes = [
        start(source, path, output, show=options.show)
        for source, output in zip((base, ROOT / "src"), outputs, strict=True)
    ]
    if any(process.wait() for process in processes):
        return 2
    found: Counter[str] = Counter()
    for line, one, other in zip(*map(read_lines, (path, *outputs)), strict=True):
        session = json.loads(line)
        for number, (before, after) in enumerate(zip(json.loads(one), json.loads(other), strict=True)):
            kind = compare_outcomes(before, after)
            found[kind or "equal"] += 1
            if kind is not None and kind != "spelling" and (options.show or found[kind] <= 10):
                print(f"{kind}: {session['name']}, request {number}")
                if options.show or kind in ("report", "error"):
                    print(*(json.dumps(value, ensure_ascii=False)[:20_000] for value in (before, after)), sep="\n")
    print(dict(found))
    return 0 if found.keys() <= {"equal", "spelling"} else 1


if __name__ == "__main__":
    sys.exit(main())

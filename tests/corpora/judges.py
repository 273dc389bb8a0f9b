"""`make corpora`: rows judged by the code of those that read them, in an environment of its own.

    python -m tests.corpora.judges [NAME …]

`datasets` loads the rows, streaming and not; `atif`, and ADP's schema where ADP names a checkout, validate
trajectories; Ray converts a corpus with two workers, of which one is killed, and writes the bytes that one process
writes.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from segue.corpora import Counts, Settings, convert, convert_session, features, load
from segue.corpora.parts import Part
from segue.corpora.ray_engine import run_on_ray
from tests.corpora.samples import PICTURE, encode, log_odd_session, write_corpus

ROOT = Path(__file__).parents[2]
FORMATS = ("openai", "template", "sharegpt", "atif", "adp")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted((folder / "data").iterdir())
        for line in file.read_text().split("\n")
        if line
    ]


def check_datasets(folder: Path) -> Iterator[str]:
    """All rows load, from lines and from tables, streaming and not, with the values that were written."""
    load_dataset = import_module("datasets").load_dataset

    for form in FORMATS:
        convert([str(folder / "in")], Settings(form), folder / form)
        written = rows_of(folder / form)
        for is_streaming in (False, True):
            found = load_dataset(
                str(folder / form),
                split="train",
                streaming=is_streaming,
                features=features(form),
                cache_dir=str(folder / "c"),
            )
            loaded = [dict(row) for row in found]
            assert [_given(row) for row in loaded] == [_given(row) for row in written], form
        tables = convert([str(folder / "in")], Settings(form, "parquet"), folder / f"{form}-tables")
        table = load_dataset(str(folder / f"{form}-tables"), split="train", cache_dir=str(folder / "c"))
        decoded, expected = (
            [{key: _decode(value) for key, value in row.items()} for row in each] for each in (table, written)
        )
        assert [_given(row) for row in decoded] == [_given(row) for row in expected], form
        yield f"{form}: {tables.rows} rows"


def _given(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def _decode(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def check_map(folder: Path) -> Iterator[str]:
    """The example for `datasets.map` converts every session."""
    sys.argv = ["corpus_datasets.py", str(folder / "in" / "sessions")]
    os.environ["HF_HOME"] = str(folder / "hf")
    runpy.run_path(str(ROOT / "examples/engines/corpus_datasets.py"), run_name="__main__")
    yield "ran"


def check_generator(folder: Path) -> Iterator[str]:
    """`Dataset.from_generator` takes the loader, with several processes, too."""
    from_generator = import_module("datasets").Dataset.from_generator
    paths = [str(file) for file in sorted((folder / "in/sessions").iterdir())]
    for processes in (None, 2):
        rows = from_generator(
            load,
            features=features("template"),
            gen_kwargs={"paths": paths, "to": "template"},
            num_proc=processes,
            cache_dir=str(folder / f"c{processes}"),
        )
        written = [row for path in paths for row in load([path], "template")]
        assert [_given(dict(row)) for row in rows] == written
        yield f"{len(rows)} rows"


def check_atif(folder: Path) -> Iterator[str]:
    """Every trajectory is valid by the format's own models."""
    trajectories = import_module("atif").Trajectory

    convert([str(folder / "in")], Settings("atif"), folder / "trajectories")
    rows = rows_of(folder / "trajectories")
    for row in rows:
        trajectory = trajectories.model_validate(row)
        for step in trajectory.steps:
            calls = {call.tool_call_id for call in step.tool_calls or ()}
            assert calls == {each.source_call_id for each in (step.observation.results if step.observation else ())}
    yield f"{len(rows)} trajectories"


def check_adp(folder: Path) -> Iterator[str]:
    """Every trajectory is valid by the schema of ADP, of which there is no package: ADP names a checkout."""
    if not (checkout := os.environ.get("ADP")):
        yield "not judged: set ADP to a checkout of neulab/agent-data-protocol"
        return
    sys.path.insert(0, checkout)
    trajectories = import_module("schema.trajectory").Trajectory
    (folder / "in/odd.jsonl").write_bytes(encode(log_odd_session()))
    convert([str(folder / "in")], Settings("adp"), folder / "trajectories")
    rows = rows_of(folder / "trajectories")
    for row in rows:
        trajectories.model_validate(row)
    yield f"{len(rows)} trajectories"


def check_teich(folder: Path) -> Iterator[str]:
    """What teich, which `datasets` calls for sessions, makes of an odd session, and what segue makes of it."""
    file = folder / "odd.jsonl"
    file.write_bytes(encode(log_odd_session()))
    theirs = import_module("teich").convert_traces_to_training_data(file)
    rows = {"teich": [dict(row) for row in theirs], "segue": convert_session(file.read_bytes(), to="template")}
    for name, found in rows.items():
        text = json.dumps([row["messages"] for row in found])
        calls = [call["id"] for row in found for message in row["messages"] for call in message.get("tool_calls") or ()]
        answered = [
            message["tool_call_id"] for row in found for message in row["messages"] if message["role"] == "tool"
        ]
        facts = {
            "rows": len(found),
            "calls with a result": len(set(calls) & set(answered)),
            "results without a call": len(set(answered) - set(calls)),
            "image": PICTURE in text,
            "error": "[error]" in text or "is_error" in text,
            "branches apart": not any(
                "LEFT" in json.dumps(row["messages"]) and "DONE" in json.dumps(row["messages"]) for row in found
            ),
            "tools": len(found[0].get("tools") or ()),
        }
        yield f"{name}: " + ", ".join(f"{key} {value}" for key, value in facts.items())


def _kill_once(function: Callable[[Part], Counts], marker: str, part: Part) -> Counts:
    """Run a part, but kill the worker of the third one, once, when it has written its output."""
    counts = function(part)
    if part.number == 2 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return counts


def check_ray(folder: Path) -> Iterator[str]:
    """Ray with two workers, one of them killed, writes what one process writes."""
    expected = convert([str(folder / "in")], Settings("template"), folder / "one")
    engine = run_on_ray(jobs=2)
    marker = str(folder / "killed")

    def killing(function: Callable[[Part], Counts], parts: Sequence[Part]) -> Iterator[tuple[Part, Counts]]:
        assert len(parts) > 3
        return engine(partial(_kill_once, function, marker), parts)

    counts = convert([str(folder / "in")], Settings("template"), folder / "two", engine=killing)
    assert Path(marker).exists()
    assert counts == expected
    assert contents(folder / "one") == contents(folder / "two")
    yield f"{counts.rows} rows in {len(list((folder / 'two/data').iterdir()))} files, equal bytes after a killed worker"


def check_urls(folder: Path) -> Iterator[str]:
    """Inputs and output may be URLs of fsspec."""
    convert([str(folder / "in")], Settings("openai", metadata=False), folder / "here")
    convert([f"file://{folder}/in"], Settings("openai", metadata=False), f"file://{folder}/there")
    data = {name: data for name, data in contents(folder / "there").items() if name.startswith("data/")}
    assert data == {name: data for name, data in contents(folder / "here").items() if name.startswith("data/")}
    yield f"{len(data)} files"


CHECKS = {
    "datasets": check_datasets,
    "map": check_map,
    "generator": check_generator,
    "atif": check_atif,
    "adp": check_adp,
    "ray": check_ray,
    "teich": check_teich,
    "urls": check_urls,
}


def main(names: Sequence[str], checks: Mapping[str, Callable[[Path], Iterator[str]]]) -> int:
    warnings.simplefilter("ignore")
    failed = False
    for name in names or checks:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_corpus(folder / "in")
            try:
                for line in checks[name](folder):
                    print(f"{name:10} {line}", flush=True)
            except Exception as error:  # noqa: BLE001  the others are run, too
                failed = True
                print(f"{name:10} FAILED {type(error).__name__}: {str(error)[:2000]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], CHECKS))

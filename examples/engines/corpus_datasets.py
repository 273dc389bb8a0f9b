"""Convert sessions with `datasets`: pip install datasets 'segue[corpora]'

`python corpus_datasets.py FOLDER` prints the first row; `num_proc` converts with several processes.
"""

import json
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Json, List

from segue import corpora

FEATURES = Features({"messages": List(Json()), "tools": List(Json())})


def convert(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Return the rows of some files; `datasets.map` calls it in each process."""
    rows = [row for file in batch["file"] for row in convert_file(file)]
    return {key: [row.get(key, []) for row in rows] for key in FEATURES}


def convert_file(file: str) -> list[dict[str, Any]]:
    return corpora.convert_session(Path(file).read_bytes(), to="template")


if __name__ == "__main__":
    files = Dataset.from_dict({"file": list(corpora.find_files(sys.argv[1:]))})
    rows = files.map(convert, batched=True, batch_size=64, remove_columns=["file"], features=FEATURES)
    print(rows.num_rows, json.dumps(rows[0]["messages"][0]))

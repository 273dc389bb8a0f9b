"""`make trainers`: rows prepared by the trainers' own code, and the example for Spark, in an environment with PyTorch.

    python -m tests.corpora.trainers [NAME …]

The preparation of TRL's `SFTTrainer` and of Axolotl's `chat_template` strategy see every call, result and answer once,
and train on what the model wrote. The tokenizer has a token a byte, the model is tiny; nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from segue.corpora import Settings, convert, features
from tests.corpora.judges import ROOT, main, rows_of
from tests.corpora.samples import MARKERS, REASONING, session

_END = "<|im_end|>"
_NOT_TRAINED = -100
WRITTEN = ("ARG-ONE", "ARG-TWO", "ARG-THREE", "ANSWER-ONE")
"""What the model wrote, of the sample."""


def _write_rows(folder: Path) -> Path:
    (folder / "session.jsonl").write_bytes(session())
    convert([str(folder / "session.jsonl")], Settings("template", metadata=False), folder / "rows")
    return folder / "rows"


def _make_tokenizer() -> Any:
    """Return a tokenizer with a token for each byte, and the template that TRL has for training Qwen3."""
    tokenizers, transformers = import_module("tokenizers"), import_module("transformers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE({each: number for number, each in enumerate(alphabet)}, [])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=_END, pad_token="<|endoftext|>")
    templates = Path(import_module("trl").__file__).parent / "chat_templates"
    tokenizer.chat_template = (templates / "qwen3_training.jinja").read_text()
    return tokenizer


def _judge(tokenizer: Any, ids: list[int], labels: list[int]) -> str:
    text = tokenizer.decode(ids)
    trained = tokenizer.decode([each for each in labels if each != _NOT_TRAINED])
    wanted = (*MARKERS, REASONING)
    assert {each: text.count(each) for each in wanted} == dict.fromkeys(wanted, 1), text
    assert {each: trained.count(each) for each in MARKERS} == {each: each in WRITTEN for each in MARKERS}, trained
    return f"{len(text):,} characters, {len(trained):,} of them trained on"


def check_trl(folder: Path) -> Iterator[str]:
    """`SFTTrainer` tokenizes rows, and masks what the model did not write."""
    trl, transformers = import_module("trl"), import_module("transformers")
    load_dataset = import_module("datasets").load_dataset
    rows = load_dataset(
        str(_write_rows(folder)),
        split="train",
        features=features("template", metadata=False),
        cache_dir=str(folder / "c"),
    )
    tokenizer = _make_tokenizer()
    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, head_dim=8, **small)
    options: dict[str, Any] = {"assistant_only_loss": True, "max_length": None, "report_to": "none", "use_cpu": True}
    trainer = trl.SFTTrainer(
        transformers.Qwen3ForCausalLM(config),
        trl.SFTConfig(str(folder / "out"), **options),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    for row in trainer.train_dataset:
        yield _judge(tokenizer, row["input_ids"], row["labels"])


def check_axolotl(folder: Path) -> Iterator[str]:
    """The strategy `chat_template` tokenizes rows, and labels what the model wrote."""
    load = import_module("axolotl.prompt_strategies.chat_template").load
    config = import_module("axolotl.utils.dict").DictDefault(sequence_len=100_000, train_on_inputs=False)
    tokenizer = _make_tokenizer()
    template = {"chat_template": "jinja", "chat_template_jinja": tokenizer.chat_template}
    strategy = load(tokenizer, config, {"field_messages": "messages", **template})
    for row in rows_of(_write_rows(folder)):
        prepared = strategy.tokenize_prompt(row)
        yield _judge(tokenizer, prepared["input_ids"], prepared["labels"])


def check_spark(folder: Path) -> Iterator[str]:
    """The example for Spark converts every session."""
    if shutil.which("java") is None:
        yield "not judged: Spark needs Java"
        return
    (folder / "sessions").mkdir()
    (folder / "sessions/session.jsonl").write_bytes(session())
    (folder / "sessions/bad.jsonl").write_text("x")
    command = [
        sys.executable,
        str(ROOT / "examples/engines/corpus_spark.py"),
        str(folder / "sessions"),
        str(folder / "o"),
    ]
    host = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    ended = subprocess.run(command, env={**os.environ, **host}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-1000:]
    lines = [json.loads(line) for file in sorted((folder / "o").glob("part-*")) for line in file.open()]
    rejected = [line for line in lines if "rejected" in line]
    assert (len(lines), len(rejected)) == (2, 1), lines
    yield f"1 row, 1 reject: {rejected[0]['reason']}"


CHECKS = {"trl": check_trl, "axolotl": check_axolotl, "spark": check_spark}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], CHECKS))

"""The limits that a provider names in the text of an error: its maximum of output tokens, the size of its context.

Each API words them in its own way; the tables hold the known wordings. A text without one has no limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = r"(\d[\d,_]*)"
# What stands in a request for the maximum of output tokens.
_OUTPUT_KEY = r"(?:max_(?:completion_|output_|new_)?tokens|max_?output_?tokens|max_?tokens|maximum tokens)"
# An error that is about output tokens: the key, then the limit, or the other way round.
_OUTPUT_LIMITS = (
    rf"{_OUTPUT_KEY}\W*\d[\d,_]*\s*>\s*{_NUMBER}, which is the maximum allowed",  # Anthropic
    rf"at most {_NUMBER} (?:completion|output) tokens",  # OpenAI, Mistral
    rf"{_OUTPUT_KEY}.{{0,80}}?\[\s*\d+\s*,\s*{_NUMBER}\s*\]",  # DeepSeek, Qwen
    rf"{_OUTPUT_KEY}\W{{1,3}}must be (?:less than or equal to|at most|<=)\W*{_NUMBER}",  # Groq
    rf"maximum tokens you requested exceeds the model limit of {_NUMBER}",  # Bedrock
    rf"{_OUTPUT_KEY}.{{0,60}}?(?:maximum|limit|supports?).{{0,40}}?{_NUMBER}",
)
# Gemini: the end of the range is not part of it.
_OUTPUT_BELOW = rf"{_OUTPUT_KEY}.*?from \d+ \(inclusive\) to {_NUMBER} \(exclusive\)"
# Prompt and output together are too long: the texts name both the prompt and the context.
_TOGETHER = (
    r"(?P<prompt>\d[\d,_]*) \+ \d[\d,_]* > (?P<context>\d[\d,_]*)",  # Anthropic
    r"> (?P<context>\d[\d,_]*) - (?P<prompt>\d[\d,_]*)",  # vLLM
    r"`inputs` tokens \+ `max_new_tokens` must be <= (?P<context>\d[\d,_]*)\. Given: (?P<prompt>\d[\d,_]*)",  # TGI
    # OpenAI, vLLM, DeepSeek
    r"maximum context length is (?P<context>\d[\d,_]*).*?\((?P<prompt>\d[\d,_]*) in [^)]*?[1-9]\d* \w+ the compl",
)
_CONTEXT_LIMITS = (
    rf"maximum context length (?:is|of) {_NUMBER}",  # OpenAI, vLLM, DeepSeek
    rf"\d[\d,_]* tokens? > {_NUMBER} maximum",  # Anthropic
    rf"model token limit:? {_NUMBER}",  # Moonshot
    rf"maximum number of (?:input )?tokens allowed \(?{_NUMBER}",  # Gemini
    rf"range of input length should be \[\d+, ?{_NUMBER}\]",  # Qwen
    rf"context (?:size|window|length|limit)[^\d]{{0,40}}{_NUMBER}",  # llama.cpp, Ollama and others
    rf"too large for model with {_NUMBER} maximum context length",  # Mistral
    rf"maximum prompt length is {_NUMBER}",  # xAI
    rf"longer than the maximum model length of {_NUMBER}",  # vLLM
    rf"reduce the length of the messages.{{0,40}}?current length is \d+ while limit is {_NUMBER}",  # Cerebras
)
# Wordings that may come without a number.
_TOO_LONG = (
    r"context[ _](?:length|size)|context window|prompt is too long|too many (?:input )?tokens|input is too long"
    r"|input token count|maximum context|range of input length|exceeded model token limit"
    r"|exceed context limit"  # Anthropic, with the maximum of output tokens
    r"|maximum prompt length is"  # xAI
    r"|prompt exceeds max length"  # Z.ai
    r"|reduce the length of the messages"  # Groq, Cerebras
    r"|longer than the maximum model length"  # vLLM
    r"|`inputs` tokens \+ `max_new_tokens` must be"  # TGI
)
_PROMPT_SIZES = (
    rf"prompt is too long: {_NUMBER} tokens",  # Anthropic
    rf"(?:messages resulted in|you requested|request contains|prompt contains) (?:about )?{_NUMBER} tokens",
    rf"requested: {_NUMBER}\)",  # Moonshot
    rf"input token count \({_NUMBER}\)",  # Gemini
    rf"prompt \(length {_NUMBER}\)",  # vLLM
    rf"current length is {_NUMBER}",  # Cerebras
)
_SLACK = 16


def is_too_long(message: str) -> bool:
    """Return whether an error text means that the request does not fit into the context of the model.

    A limit of output tokens alone does not: it is a wrong value of the request.
    """
    if _search(_TOO_LONG, message) is None:
        return False
    return _find_together(message) is not None or find_output_limit(message) is None


def find_prompt_size(message: str) -> int | None:
    """Return the number of tokens that an error text gives the prompt."""
    if (together := _find_together(message)) is not None:
        return _to_int(together["prompt"])
    return _find_first(_PROMPT_SIZES, message)


def find_output_limit(message: str) -> int | None:
    """Return the maximum of output tokens that an error text allows for the same request; None if it names none."""
    if (together := _find_together(message)) is not None:
        left = _to_int(together["context"]) - _to_int(together["prompt"]) - _SLACK
        return left if left > 0 else None
    if (below := _search(_OUTPUT_BELOW, message)) is not None:
        return _to_int(below[1]) - 1
    return _find_first(_OUTPUT_LIMITS, message)


def find_context_limit(message: str) -> int | None:
    """Return the size of the context that an error text names."""
    if (together := _find_together(message)) is not None:
        return _to_int(together["context"])
    return _find_first(_CONTEXT_LIMITS, message)


def _search(pattern: str, message: str) -> re.Match[str] | None:
    # Compiled on first use: few processes get such an error.
    return re.search(pattern, message, re.IGNORECASE | re.DOTALL)


def _find_together(message: str) -> re.Match[str] | None:
    return next((match for pattern in _TOGETHER if (match := _search(pattern, message)) is not None), None)


def _find_first(patterns: Sequence[str], message: str) -> int | None:
    found = next((match for pattern in patterns if (match := _search(pattern, message)) is not None), None)
    return None if found is None else _to_int(found[1]) or None


def _to_int(text: str) -> int:
    return int(text.replace(",", "").replace("_", "") or "0")

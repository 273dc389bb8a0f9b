"""Limits in providers' error texts."""

from __future__ import annotations

import pytest

from segue.bridge.provider_errors import api_error
from segue.bridge.providers import Endpoint
from segue.limit_errors import find_context_limit, find_output_limit
from segue.wire.base import ApiError

OUTPUT = {
    "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5": 128_000,
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
    "`max_tokens` and try again": 11_744,
    "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided "
    "200000.": 16_384,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]": 8_192,
    "Range of max_tokens should be [1, 32768]": 32_768,
    "`max_completion_tokens` must be less than or equal to `65536`, the maximum value for `max_completion_tokens` is "
    "less than the `context_window` for this model": 65_536,
    "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 "
    "(inclusive) to 65537 (exclusive). Update the value and try again.": 65_536,
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is "
    "lower than 4096.": 4_096,
    "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens "
    "and your request has 1000 input tokens (9000 > 8192 - 1000).": 7_176,
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, "
    "8000 in the completion). Please reduce the length of the messages or completion.": 7_176,
}
CONTEXT = {
    "prompt is too long: 212345 tokens > 200000 maximum": 200_000,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9120 tokens.": 8_192,
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 300001)": 262_144,
    "The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]": 129_024,
    "the request exceeds the available context size (4096 tokens), try increasing it": 4_096,
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length": 32_768,
}


@pytest.mark.parametrize("text", OUTPUT)
def test_output_limit_is_found_and_is_no_reason_to_compress(text: str):
    assert find_output_limit(text) == OUTPUT[text]
    error = api_error(Endpoint("p", "m", "openai-chat", "https://x.example"), ApiError(400, text, kind=""))
    assert (error.output_limit, error.is_too_long) == (OUTPUT[text], False)


@pytest.mark.parametrize("text", CONTEXT)
def test_context_limit_is_found(text: str):
    assert (find_context_limit(text), find_output_limit(text)) == (CONTEXT[text], None)
    error = api_error(Endpoint("p", "m", "openai-chat", "https://x.example"), ApiError(400, text, kind=""))
    assert (error.context_limit, error.is_too_long) == (CONTEXT[text], True)


@pytest.mark.parametrize(
    "text", ["temperature must be at most 2", "model gpt-4096 not found", "", "max_tokens: required"]
)
def test_other_errors_have_no_limit(text: str):
    assert find_output_limit(text) is None
    assert find_context_limit(text) is None

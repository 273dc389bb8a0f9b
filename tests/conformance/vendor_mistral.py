"""mistral-common's own opinion of a body, in whichever version is installed where this runs.

Imported by the tests for the newest one. Run as a program in the environment of an older one (`make setup`), it reads
requests as JSON lines from stdin and answers each with one line: null, or why the body is refused.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
    from mistral_common.tokens.tokenizers.base import TokenizerVersion


def refusal(body: dict[str, Any], version: str) -> str | None:
    """Why the validator of this tokenizer version refuses the body, as the hosted API would; `None` if it does not."""
    validator = get_validator(TokenizerVersion(version), ValidationMode.serving)
    try:
        request = ChatCompletionRequest.model_validate({"model": "m", **_as_the_library_has_it(body)})
        validator.validate_request(request)
    except (MistralCommonException, ValueError) as refused:
        return f"{type(refused).__name__}: {refused}"
    return None


def _as_the_library_has_it(body: dict[str, Any]) -> dict[str, Any]:
    """The API has thinking as a list of text chunks, the library as a string."""
    messages = [
        {**message, "content": [_chunk(chunk) for chunk in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def _chunk(chunk: dict[str, Any]) -> dict[str, Any]:
    if chunk.get("type") != "thinking":
        return chunk
    return {**chunk, "thinking": "".join(part["text"] for part in chunk["thinking"])}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(refusal(asked["body"], asked["version"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

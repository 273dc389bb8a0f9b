"""What each model family on Converse supports: one row per family, by the model id.

The service passes requests on to models of many vendors, and most rules come from them. An unknown model gets a strict
row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from segue.models import Model

API = "bedrock"
DEFAULT_MODEL = "us.anthropic.claude-sonnet-5"

_NO_MEDIA: frozenset[str] = frozenset()
_IMAGES = frozenset({"image"})
_IMAGES_AND_DOCUMENTS = frozenset({"image", "document"})


class Capabilities(Struct, frozen=True):
    """`user_media` are the media accepted in user messages, `result_media` those accepted in tool results.

    `text_with_results`: a message may hold text next to results; `assistant_first`: the first message may be the
    assistant's; `error_flag`: results may have a `status`.
    """

    user_media: frozenset[str] = _IMAGES_AND_DOCUMENTS
    result_media: frozenset[str] = _NO_MEDIA
    keeps_result_media: bool = True
    """Whether same-API results keep media of any kind: no rejection is known."""
    text_with_results: bool = True
    hosted_tools: bool = False
    """Whether the provider has hosted tools for the model."""
    forced_choice: bool = False
    error_flag: bool = True
    ending: Literal["prefill", "human"] = "human"
    assistant_first: bool = False
    reasoning_replay: Literal["none", "either", "refused"] = "none"
    top_k_path: str | None = None
    """Path of `top_k` in `additionalModelRequestFields`; None if the model has no such field."""
    reasoning_form: Literal["", "nova", "gpt", "qwen"] = ""
    """Whose reasoning options the model has, for models other than Claude: those of Nova, of gpt-oss or of Qwen."""


@lru_cache(maxsize=128)
def capabilities_of(model: Model) -> Capabilities:
    match model.family:
        case "claude":
            return Capabilities(
                result_media=_IMAGES_AND_DOCUMENTS,
                keeps_result_media=False,
                hosted_tools=True,
                forced_choice=True,
                assistant_first=True,
                top_k_path="top_k",
            )
        case "nova":
            media = _NO_MEDIA if model.line == "micro" else _IMAGES_AND_DOCUMENTS | {"video"}
            reasoning_form = "nova" if model.at_least(2) else ""
            return Capabilities(
                media,
                media,
                hosted_tools=True,
                forced_choice=True,
                ending="prefill",
                top_k_path="inferenceConfig.topK",
                reasoning_form=reasoning_form,
            )
        case "llama":
            # BED-07; «requires the last turn in the conversation to be a user message»
            media = _IMAGES_AND_DOCUMENTS if model.at_least(3, 2) else _NO_MEDIA
            return Capabilities(media, media if model.at_least(4) else _NO_MEDIA, text_with_results=False)
        case "mistral":
            accepts_images = "pixtral" in model.name or model.tokenizer_version >= 13
            return Capabilities(
                _IMAGES_AND_DOCUMENTS if accepts_images else _NO_MEDIA,
                frozenset({"document"}) if accepts_images else _NO_MEDIA,
                text_with_results=False,
                forced_choice=model.line == "large",
            )
        case "qwen":
            # BED-06
            media = _IMAGES if "vl" in model.name else _NO_MEDIA
            return Capabilities(media, assistant_first=True, reasoning_form="qwen")
        case "gpt":
            return Capabilities(_NO_MEDIA, reasoning_form="gpt")
        case "deepseek":
            # BED-11
            return Capabilities(_NO_MEDIA, reasoning_replay="refused")
        case "palmyra":
            # BED-09
            return Capabilities(_NO_MEDIA, error_flag=False)
        case "":
            # An inference profile: its model may be Claude.
            return Capabilities(hosted_tools=True, assistant_first=True, reasoning_replay="either")
        case "gemma":
            return Capabilities()
        case _:
            return Capabilities(_NO_MEDIA)

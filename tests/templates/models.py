"""The text format of each template, including related models."""

from __future__ import annotations

from segue.wire.text.deepseek import DEEPSEEK_TEXT
from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML

QWEN_25, QWEN_3, QWQ = "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen-QwQ-32B"
HERMES_2, HERMES_3 = "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use"
QWEN_CODER, QWEN_35, NEMOTRON_3 = "Qwen3-Coder", "Qwen3.5-4B", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
GLM_46, GLM_47, MINIMAX_M2, MINIMAX_M3 = "GLM-4.6", "GLM-4.7-Flash", "MiniMax-M2", "MiniMax-M3"
SEED = "ByteDance-Seed-OSS"
LLAMA_31, LLAMA_32 = "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct"
LLAMA_33, FUNCTIONARY = "meta-llama-Llama-3.3-70B-Instruct", "meetkai-functionary-medium-v3.1"
GEMMA_2, GEMMA_4, GEMMA_4_OLD = "google-gemma-2-2b-it", "google-gemma-4-31B-it", "google-gemma-4-31B-it-interleaved"
DEEPSEEK_R1, R1_QWEN = "llama-cpp-deepseek-r1", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B"
DEEPSEEK_31, DEEPSEEK_32 = "deepseek-ai-DeepSeek-V3.1", "deepseek-ai-DeepSeek-V3.2"
DEEPSEEK_4, DEEPSEEK_4_FLASH = "deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731"
KIMI_K2, KIMI_K2_NEW, KIMI_THINKING = "moonshotai-Kimi-K2", "Kimi-K2-Instruct", "Kimi-K2-Thinking"
KIMI_K3 = "Kimi-K3"
NEMO, SMALL_32 = "mistralai-Mistral-Nemo-Instruct-2407", "Mistral-Small-3.2-24B-Instruct-2506"
DEVSTRAL, MINISTRAL_3 = "unsloth-mistral-Devstral-Small-2507", "mistralai-Ministral-3-14B-Reasoning-2512"
GPT_OSS = "openai-gpt-oss-120b"

FORMAT_OF: dict[str, TextFormat] = {
    **dict.fromkeys((QWEN_25, QWEN_3, QWQ, HERMES_2, HERMES_3, "MiMo-VL", "Reka-Edge"), HERMES),
    **dict.fromkeys(("Bielik-11B-v3.0-Instruct", "ibm-granite-granite-4.0", "ibm-granite-granite-4.1"), HERMES),
    **dict.fromkeys((QWEN_CODER, QWEN_35, NEMOTRON_3, "StepFun3.5-Flash", SEED), XML),
    **dict.fromkeys((GLM_46, GLM_47, "Spark2.5", "inclusionai-ling-3.0-flash", MINIMAX_M2, MINIMAX_M3), XML),
    **dict.fromkeys(("poolside-Laguna-S-2.1", "poolside-Laguna-XS-2.1", "poolside-Laguna-XS.2"), XML),
    **dict.fromkeys((LLAMA_31, LLAMA_32, LLAMA_33, FUNCTIONARY), LLAMA),
    **dict.fromkeys((GEMMA_4, GEMMA_4_OLD), GEMMA),
    **dict.fromkeys((DEEPSEEK_R1, R1_QWEN, DEEPSEEK_31, DEEPSEEK_32, DEEPSEEK_4, DEEPSEEK_4_FLASH), DEEPSEEK_TEXT),
    **dict.fromkeys((KIMI_K2, KIMI_K2_NEW, KIMI_THINKING, KIMI_K3), KIMI_TEXT),
    **dict.fromkeys((NEMO, SMALL_32, DEVSTRAL, MINISTRAL_3), MISTRAL_TEXT),
}

"""The names of the text tool formats, without the modules that implement them: most conversions need none."""

TEXT_FORMAT_NAMES = ("hermes", "xml", "llama", "gemma", "deepseek-text", "kimi-text", "mistral-text")

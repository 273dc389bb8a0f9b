"""Text tool formats: tool calls that a model writes in its text instead of in API fields."""

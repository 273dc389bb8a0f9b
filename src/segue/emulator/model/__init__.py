"""The model behind an emulated provider: by a script, or built in, which looks at the tools and uses them."""

"""The model of an emulated provider: scripted, or built in, which calls the declared tools."""

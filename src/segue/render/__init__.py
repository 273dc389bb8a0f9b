"""The renderer: canonical history in, valid transcript and report out. It handles no provider JSON."""

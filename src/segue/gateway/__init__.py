"""The gateway: every client API on one address, with any model behind it."""

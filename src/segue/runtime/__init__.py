"""The agent: one scheduler, one turn loop, any provider."""

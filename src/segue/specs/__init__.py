"""What vendors publish and what their services do, as data: the rulebook, the providers, the types of requests."""

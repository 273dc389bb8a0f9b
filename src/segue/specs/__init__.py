"""What vendors publish and what their services do, as data: the rulebook."""

"""Sessions of coding clients: finding, reading and writing them, and moving one from a client to another."""

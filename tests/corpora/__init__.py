"""Corpora: sessions, trajectories, rows and batch files as rows of other formats."""

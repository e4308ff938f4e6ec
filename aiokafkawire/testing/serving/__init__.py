"""Connections: listening, frames, and the table of what is served."""

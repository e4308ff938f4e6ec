"""Connections: listening, frames, and the table of APIs."""

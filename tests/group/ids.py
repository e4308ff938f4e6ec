"""Ids of topics that tests of offsets share."""

from uuid import UUID

__all__ = ("A_ID", "B_ID", "UNKNOWN_ID")

A_ID, B_ID = UUID(int=10), UUID(int=11)
UNKNOWN_ID = 100
"""The error code of an id that no topic has."""

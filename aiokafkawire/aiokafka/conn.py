"""The name that users import from aiokafka's module of connections."""

from .abc import AbstractTokenProvider

__all__ = ("AbstractTokenProvider",)

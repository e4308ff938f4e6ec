"""The release of Apache Kafka that introduced each API, for errors about brokers that lack an API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ("brought_by",)

_BROUGHT: Final = {
    "0.8.1": (8, 9),
    "0.8.2": (10,),
    "0.9": (11, 12, 13, 14, 15, 16),
    "0.10": (17, 18),
    "0.10.1": (19, 20),
    "0.11": (21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33),
    "1.0": (34, 35, 36, 37),
    "1.1": (38, 39, 40, 41, 42),
    "2.2": (43,),
    "2.3": (44,),
    "2.4": (45, 46, 47),
    "2.6": (48, 49),
    "2.7": (50, 51, 57),
    "2.8": (60, 61),
    "3.0": (65, 66),
    "3.3": (55, 64),
    "3.7": (68, 71, 72, 74),
    "3.8": (69, 75),
    "3.9": (80, 81),
    "4.1": (76, 77, 78, 79, 90, 91, 92),
    "4.2": (88, 89),
    "4.4": (94,),
}
"""API keys by the first release that supports the API for clients. APIs of 0.8.0 and between brokers are left out."""

_BY_KEY: Final[Mapping[int, str]] = MappingProxyType({key: name for name, keys in _BROUGHT.items() for key in keys})


def brought_by(api_key: int) -> str | None:
    """Return the release that introduced an API, such as "0.11"; None for APIs of 0.8.0 and APIs between brokers."""
    return _BY_KEY.get(api_key)

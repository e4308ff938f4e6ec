"""The definition of a setting: its type, limits and default, and Kafka's errors for invalid values."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError

__all__ = ("ConfigValueSource", "ConfigType", "Definition", "ConfigKind", "read_table")


class ConfigType(IntEnum):
    """The types of settings, with their codes in DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigValueSource(IntEnum):
    """The sources of values, with their codes in DescribeConfigs (KIP-226)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigKind(IntEnum):
    """The types of resources that have settings."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_BITS: Final = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
_DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?")
_THROTTLED: Final = re.compile(r"\d+:\d+")
_RESET: Final = re.compile(r"(?i:earliest|latest|by_duration:P(?=\d|T\d)(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)")
_WHOLE: Final = re.compile(r"[+-]?\d+")


@attrs.frozen
class Definition:
    """The definition of one setting.

    ``limits`` look like ``1..9`` or ``1..`` for numbers, ``a|b`` for strings and lists, ``-`` for none; ``throttled``
    and ``reset`` are special formats. ``synonym`` is the broker setting that gives a topic or group its default.
    ``dynamic`` is the scope for which requests can change a broker setting: ``broker``, ``cluster``, or ``-`` for none.
    """

    name: str
    type: ConfigType
    default: str | None
    limits: str = "-"
    synonym: str | None = None
    dynamic: str = "-"

    @property
    def is_sensitive(self) -> bool:
        """Whether the setting is a password, whose value responses leave out."""
        return self.type is ConfigType.PASSWORD

    def parse(self, value: str) -> str:
        """Return the value as Kafka spells it.

        Raises:
            ApiError: INVALID_CONFIG, the value has another type or exceeds the limits.
        """
        text = value.strip()
        match self.type:
            case ConfigType.BOOLEAN:
                if text.lower() not in ("true", "false"):
                    raise self._bad(value, "Expected value to be either true or false")
                return text.lower()
            case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
                return str(self._whole(value, text))
            case ConfigType.DOUBLE:
                return self._double(value, text)
            case ConfigType.LIST:
                return self._list(text)
            case _:
                return self._string(text)

    def _whole(self, value: str, text: str) -> int:
        bound = 1 << _BITS[self.type]
        if not _WHOLE.fullmatch(text) or not -bound <= int(text) < bound:
            raise self._bad(value, f"Not a number of type {self.type.name}")
        self._check_range(int(text), text)
        return int(text)

    def _double(self, value: str, text: str) -> str:
        if not _DOUBLE.fullmatch(text):
            raise self._bad(value, "Not a number of type DOUBLE")
        number = float(text.rstrip("fFdD"))
        self._check_range(number, repr(number))
        return repr(number)

    def _check_range(self, number: float, shown: str) -> None:
        least, dots, most = self.limits.partition("..")
        if not dots:
            return
        if self.name == "compression.gzip.level" and not (number == -1 or 1 <= number <= 9):
            raise self._bad(shown, "Value must be between 1 and 9 or equal to -1")
        if least and number < float(least):
            raise self._bad(shown, f"Value must be at least {least}")
        if most and number > float(most):
            raise self._bad(shown, f"Value must be no more than {most}")

    def _string(self, text: str) -> str:
        if self.limits == "reset" and not _RESET.fullmatch(text):
            raise self._bad(
                text,
                f"Invalid value `{text}` for configuration {self.name}. The value must be either 'earliest', "
                "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            )
        if "|" in self.limits and text not in self.limits.split("|"):
            raise self._bad(text, f"String must be one of: {self.limits.replace('|', ', ')}")
        return text

    def _list(self, text: str) -> str:
        items = list(dict.fromkeys(re.split(r"\s*,\s*", text))) if text else []
        if self.limits == "throttled":
            if items not in ([], ["*"]) and not all(_THROTTLED.fullmatch(item) for item in items):
                raise self._bad(
                    f"[{', '.join(items)}]",
                    f"{self.name} must be the literal '*' or a list of replicas in the following format: "
                    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
                )
            return ",".join(items)
        if "" in items:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Configuration '{self.name}' values must not be empty.")
        for item in items:
            if "|" in self.limits and item not in self.limits.split("|"):
                raise self._bad(item, f"String must be one of: {self.limits.replace('|', ', ')}")
        return ",".join(items)

    def _bad(self, value: str, fault: str) -> ApiError:
        return ApiError(ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {self.name}: {fault}")


def read_table(text: str) -> Mapping[str, Definition]:
    """Read a table of settings with the columns name, type, default, limits, synonym and dynamic.

    ``-`` means none, ``""`` the empty value; trailing columns may be missing.
    """
    table = {}
    for line in text.strip().splitlines():
        name, kind, default, *rest = line.split()
        limits, synonym, dynamic = (*rest, "-", "-", "-")[:3]
        table[name] = Definition(
            name,
            ConfigType[kind.upper()],
            None if default == "-" else default.strip('"'),
            limits,
            None if synonym == "-" else synonym,
            dynamic,
        )
    return table

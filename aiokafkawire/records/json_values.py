"""The reading of a whole column of JSON objects by pyarrow, where that finds the same as reading them one by one.

pyarrow also accepts ``Inf``, and objects in a field that is left out which are nested too deep for Python.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

__all__ = ("json_column",)

_SAME: Final = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
)
_SPACE: Final = " \t\r\n"
_MAX_BYTES: Final = 64 * 1024 * 1024
"""The size of a column above which pyarrow does not read it at once, since the event loop waits meanwhile."""


def json_column(values: "pa.Array", struct: "pa.DataType") -> "pa.Array | None":
    """Return the structs of a column of JSON objects; null for null.

    Return None where the values have to be read one by one: one is no JSON object, does not fit the struct, or has a
    key twice, or Arrow reads one of the struct's types in another way than Python does.
    """
    if not (pa.types.is_struct(struct) and _is_same(struct)):
        return None
    known = values.drop_null()
    if not len(known):
        return pa.nulls(len(values), struct)
    if known.nbytes > _MAX_BYTES:
        return None
    try:
        found = _read(known, struct)
    except (pa.ArrowException, ValueError):
        return None
    if found is None or not values.null_count:
        return found
    # Each row takes the next of the structs, or null.
    at = pc.subtract(pc.cumulative_sum(pc.cast(values.is_valid(), pa.int64())), 1)
    return found.take(pc.if_else(values.is_valid(), at, None))


def _read(values: "pa.Array", struct: "pa.StructType") -> "pa.Array | None":
    texts = pc.utf8_trim(values.cast(pa.string()), _SPACE)  # the cast checks that all is UTF-8
    # If each text is enclosed in braces and all are valid JSON, then no object goes on in the next text: between two
    # braces is a line feed, which can be neither in a string nor between the elements of an array or object.
    if not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
        return None
    # pyarrow crashes if the first row is null, so the first is an object of ours.
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0]
    data = b"{}\n" + memoryview(lines.as_buffer())
    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(struct)), newlines_in_values=True, unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != 1 + len(values):  # a text has several objects
        return None
    batch = table.combine_chunks().to_batches()[0].slice(1)
    return pa.StructArray.from_arrays(batch.columns, fields=list(struct))


def _is_same(kind: "pa.DataType") -> bool:
    """Return whether Arrow reads JSON values of a type as Python does, and checks them as it does.

    It takes text for bytes without base64, reads nanoseconds, which Python does not have, and accepts nulls in fields
    that must not have any.
    """
    if pa.types.is_struct(kind):
        return all(field.nullable and _is_same(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_same(kind.value_type)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return any(is_kind(kind) for is_kind in _SAME)

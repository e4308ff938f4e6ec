"""Bytes that were right, and are not any more."""

from collections.abc import Sequence

from hypothesis import strategies as st

__all__ = ("mutated_bytes",)


@st.composite
def mutated_bytes(draw: st.DrawFn, data: bytes, lies: Sequence[bytes]) -> bytes:
    """These bytes with pieces replaced, left out, repeated or put in; some of the pieces are lies."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        whole = st.sampled_from((b"\0" * 8, data[start:end] * 2, *lies))
        data = data[:start] + draw(st.one_of(st.binary(max_size=8), whole)) + data[end:]
    return data

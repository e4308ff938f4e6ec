"""Tests of decoding run on both twins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aiokafkawire.protocol import compiler


@pytest.fixture(scope="module", params=["pure", "cython"])
def each_decoder(request: pytest.FixtureRequest) -> Iterator[str]:
    """The decoder that :func:`decode` uses: the pure one, then the compiled one where it is built."""
    name: str = request.param
    if name not in compiler.DECODERS:
        pytest.skip("the compiled decoder is not built here: it takes a C compiler while installing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_decode_prefix", compiler.DECODERS[name])
        yield name

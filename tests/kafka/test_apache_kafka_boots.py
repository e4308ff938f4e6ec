from __future__ import annotations

import struct

from support.apache_kafka import ApacheKafka, exchange

API_VERSIONS = 18
PRODUCE = 0


def test_server_lists_produce_in_api_versions(apache_kafka: ApacheKafka) -> None:
    response = exchange(apache_kafka.bootstrap, API_VERSIONS, 0, b"")
    error, count = struct.unpack_from(">hi", response)
    assert error == 0
    assert len(response) == 6 + 6 * count
    highest = {key: high for key, _low, high in struct.iter_unpack(">hhh", response[6:])}
    assert highest[PRODUCE] >= 11

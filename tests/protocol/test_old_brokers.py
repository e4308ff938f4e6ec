"""What is known of brokers that do not tell their versions, and which release brought what."""

import pytest

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.old_brokers import ANSWERS_API_VERSIONS, SPOKEN_UNTOLD, Known, probes, release_told_by
from aiokafkawire.protocol.since import brought_by
from aiokafkawire.testing.cluster.releases import RELEASES

AMONG_BROKERS = range(4, 8)


@pytest.mark.parametrize("release", SPOKEN_UNTOLD)
def test_the_versions_of_old_brokers_are_those_that_they_understand(release: str) -> None:
    understood = {key: spoken for key, spoken in RELEASES[release].items() if key not in AMONG_BROKERS}
    assert SPOKEN_UNTOLD[release] == understood


def test_the_answers_to_the_probes_tell_the_release() -> None:
    for release, spoken in SPOKEN_UNTOLD.items():
        answered = [probe.api_key in spoken for probe in probes()]
        assert answered == sorted(answered, reverse=True), "who knows a later question knows the earlier ones"
        assert release_told_by(sum(answered)) == release
    assert release_told_by(0) is None


def test_what_answers_api_versions_has_no_versions_beforehand() -> None:
    assert not ANSWERS_API_VERSIONS.is_untold
    assert ANSWERS_API_VERSIONS.versions == {}
    assert Known("0.8.2").is_untold
    assert Known("0.8.2").versions == SPOKEN_UNTOLD["0.8.2"]


def test_each_request_is_said_to_come_with_the_first_release_that_has_it() -> None:
    first: dict[int, str] = {}
    for name, spoken in RELEASES.items():
        for key in spoken:
            first.setdefault(key, name)
    told = {key: brought_by(key) for key in ApiKey}
    assert {key: since for key, since in told.items() if since is not None} == {
        key: first[key].removesuffix(".0") if first[key].count(".") == 2 else first[key]
        for key in told
        if key in first and first[key] != "0.8.0" and told[key] is not None
    }
    unsaid = {key for key, since in told.items() if since is None and first.get(key) not in (None, "0.8.0")}
    assert unsaid == {ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS, *range(83, 88)}

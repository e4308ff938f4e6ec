"""What is known of brokers that do not tell their versions, and which release brought what."""

import pytest

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.introduced_in import brought_by
from aiokafkawire.protocol.pre_api_versions import (
    SPOKEN_UNTOLD,
    BrokerVersion,
    probes,
    release_told_by,
)
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.testing.cluster.releases import RELEASES, release_named
from aiokafkawire.testing.serving.apis import APIS

AMONG_BROKERS = range(4, 8)


@pytest.mark.parametrize("release", SPOKEN_UNTOLD)
def test_the_versions_of_old_brokers_are_those_that_they_understand(release: str) -> None:
    understood = {key: spoken for key, spoken in RELEASES[release].items() if key not in AMONG_BROKERS}
    assert SPOKEN_UNTOLD[release] == understood


def test_the_answers_to_the_probes_tell_the_release() -> None:
    for release in SPOKEN_UNTOLD:
        served = release_named(release, APIS).served
        answered = [version.last in served.get(probe.api_key, Versions(0, -1)) for probe, version in probes()]
        assert answered == sorted(answered, reverse=True), "who knows a later question knows the earlier ones"
        assert release_told_by(sum(answered)) == release
    assert release_told_by(0) is None


def test_the_probes_change_nothing_and_need_no_version_that_newer_brokers_brought() -> None:
    # FindCoordinator would have 0.8.2 create the topic of the offsets.
    assert ApiKey.FIND_COORDINATOR not in [probe.api_key for probe, _ in probes()]
    newest = SPOKEN_UNTOLD["0.9.0"]
    assert all(version.last in newest[probe.api_key] for probe, version in probes())


def test_what_answers_api_versions_has_no_versions_beforehand() -> None:
    told = BrokerVersion(api_versions=4)
    assert not told.is_untold
    assert told.versions == {}
    assert BrokerVersion("0.8.2").is_untold
    assert BrokerVersion("0.8.2").versions == SPOKEN_UNTOLD["0.8.2"]


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
    assert unsaid == {ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS, *range(83, 88), 93}

"""Beginning again from the bootstrap addresses (KIP-899, KIP-1102), and brokers that are elsewhere than they say."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.clusters import Net, hang, metadata, opened, partition, topic
from support.connecting import eventually
from support.patience import SOON
from support.scripted_broker import ScriptedBroker

from aiokafkawire.cluster.rebootstrap import MetadataCandidates, RebootstrapPolicy
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import ConfigError, ErrorCode, NoBrokerReachable
from aiokafkawire.network import happy_eyeballs
from aiokafkawire.network.happy_eyeballs import canonical
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.types import Address, TopicPartition

A, B, C = Address("a", 1), Address("b", 1), Address("c", 1)


def recovery(**options: Any) -> RebootstrapPolicy:
    return RebootstrapPolicy(make_config(ClientConfig, {"metadata_recovery_rebootstrap_trigger_ms": 10_000, **options}))


def test_known_brokers_are_asked_first_and_not_for_ever() -> None:
    one = recovery()
    assert one.candidates((), (C,), 0.0) == MetadataCandidates((), None, (C,))
    first = one.candidates((A, B), (B, C), 100.0)
    assert (first.known, first.bootstrap) == ((A, B), (C,))
    assert first.until is not None
    assert first.until.at == 110.0
    assert one.candidates((A, B), (B, C), 109.0).known == (A, B)
    assert one.candidates((A, B), (B, C), 110.0) == MetadataCandidates((), None, (B, C))
    one.learned()
    assert one.candidates((A, B), (B, C), 111.0).known == (A, B)


def test_a_demand_holds_until_there_is_metadata() -> None:
    one = recovery()
    assert one.demanded()
    assert one.candidates((A,), (A, C), 0.0) == MetadataCandidates((), None, (A, C))
    one.learned()
    assert one.candidates((A,), (A, C), 0.0).known == (A,)


def test_none_means_the_known_brokers_alone() -> None:
    one = recovery(metadata_recovery_strategy="none")
    assert not one.demanded()
    assert one.candidates((A,), (C,), 1e9) == MetadataCandidates((A,), None, (C,)[1:])
    assert one.candidates((), (C,), 1e9).bootstrap == (C,)


def told(host: str, cluster_id: str | None = None, *topics: Any, error: int = 0) -> Any:
    answer = metadata(*topics, hosts=[host], error=error)
    answer.cluster_id = cluster_id
    return answer


@pytest.mark.anyio
async def test_when_all_known_brokers_are_gone_the_bootstrap_addresses_are_asked() -> None:
    async with ScriptedBroker() as old, ScriptedBroker() as new:
        net = Net(seed=old, known=old)
        old.on[ApiKey.METADATA] = lambda _: told("known", "one", topic("t", partition(0, epoch=7)))
        new.on[ApiKey.METADATA] = lambda _: told("fresh", "two", topic("t", partition(0, epoch=1)))
        async with opened(net.connect, "seed:9092") as cluster:
            cluster.metadata.track_topics(("t",))
            snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(5))
            del net.hosts["known"]
            net.hosts["seed"] = net.hosts["fresh"] = new.connect
            await cluster.brokers.abandon()
            snapshot = await cluster.metadata.refresh(snapshot, cluster.deadline(5))
            assert snapshot.nodes[1].address.host == "fresh"
            # It is another cluster: epochs of the old one do not count.
            found = snapshot.partition(TopicPartition("t", 0))
            assert found is not None
            assert found.leader_epoch == 1


@pytest.mark.anyio
async def test_without_recovery_the_known_brokers_alone_are_asked() -> None:
    async with ScriptedBroker() as broker:
        net = Net(seed=broker, known=broker)
        broker.on[ApiKey.METADATA] = lambda _: told("known")
        async with opened(net.connect, "seed:9092", metadata_recovery_strategy="none") as cluster:
            del net.hosts["known"]
            net.dials.clear()
            cluster.metadata.mark_stale(cluster.metadata.snapshot)
            await eventually(lambda: len(net.dials) > 3)
            assert set(net.dials) == {"known"}
            net.hosts["known"] = broker.connect
            await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(5))


@pytest.mark.anyio
async def test_brokers_that_keep_silent_are_left_when_it_is_time() -> None:
    async with ScriptedBroker() as broker:
        net = Net(seed=broker)
        net.hosts["known"] = hang
        broker.on[ApiKey.METADATA] = lambda _: told("known")
        limits: dict[str, Any] = {
            "metadata_recovery_rebootstrap_trigger_ms": 50,
            "socket_connection_setup_timeout_ms": 60_000,
        }
        with anyio.fail_after(SOON):
            async with opened(net.connect, "seed:9092", **limits) as cluster:
                await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(5))
        assert "known" in net.dials


@pytest.mark.anyio
async def test_a_broker_that_says_to_begin_again_is_left() -> None:
    async with ScriptedBroker() as wrong, ScriptedBroker() as right:
        net = Net(seed=right, known=wrong, fresh=right)
        hosts = ["known"]
        right.on[ApiKey.METADATA] = lambda _: told(hosts[0])
        wrong.on[ApiKey.METADATA] = lambda _: told("known", error=ErrorCode.REBOOTSTRAP_REQUIRED)
        async with opened(net.connect, "seed:9092") as cluster:
            held = await cluster.connection(cluster.metadata.snapshot.nodes[1], "some lane")
            hosts[0] = "fresh"
            snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(5))
            assert snapshot.nodes[1].address.host == "fresh"
            assert held.failure is not None


@pytest.mark.anyio
async def test_brokers_behind_nat_are_dialled_where_the_map_says() -> None:
    async with ScriptedBroker() as broker:
        net = Net(seed=broker, outside=broker)
        broker.on[ApiKey.METADATA] = lambda _: told("inside")
        asked = []

        def outside(host: str, port: int) -> tuple[str, int]:
            asked.append((host, port))
            return "outside", port

        async with opened(net.connect, "seed:9092", advertised_listeners_map=outside) as cluster:
            node = cluster.metadata.snapshot.nodes[1]
            connection = await cluster.connection(node)
            assert connection.broker == "inside:9092"
            assert node.address.host == "inside"
        assert net.dials == ["seed", "outside"]
        assert asked == [("inside", 9092)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda host, port: {}[host], "advertised_listeners_map failed for inside:9092: KeyError"),
        (lambda host, port: ("", port), "returned no host and port for inside:9092"),
        (lambda host, port: ("h", "1"), "returned no host and port for inside:9092"),
        (lambda host, port: ("h", 0), "returned no host and port for inside:9092"),
        (lambda host, port: None, "advertised_listeners_map failed for inside:9092: TypeError"),
    ],
)
async def test_a_map_that_leads_nowhere_is_an_error_that_says_so(given: Any, message: str) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: told("inside")
        async with opened(Net(seed=broker).connect, "seed:9092", advertised_listeners_map=given) as cluster:
            with pytest.raises(ConfigError, match=message):
                await cluster.connection(cluster.metadata.snapshot.nodes[1])


# --- names ---------------------------------------------------------------------------------------------------


def names(monkeypatch: pytest.MonkeyPatch, known: dict[str, str]) -> None:
    async def addresses(host: str, port: int) -> list[str]:
        if host != "alias":
            raise OSError("not known")
        return list(known)

    async def name(address: tuple[str, int], flags: int) -> tuple[str, str]:
        if not known[address[0]]:
            raise OSError("no name")
        return known[address[0]], str(address[1])

    monkeypatch.setattr(happy_eyeballs, "addresses_of", addresses)
    monkeypatch.setattr(anyio, "getnameinfo", name)


@pytest.mark.anyio
async def test_canonical_names_are_those_of_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, {"10.0.0.1": "b1", "10.0.0.2": "b2", "10.0.0.3": "", "::1": "b1"})
    assert await canonical(Address("alias", 1)) == (Address("b1", 1), Address("b2", 1), Address("10.0.0.3", 1))
    assert await canonical(Address("unknown", 1)) == (Address("unknown", 1),)
    monkeypatch.undo()
    assert await canonical(Address("käse_1", 1)) == (Address("käse_1", 1),)  # no host name


@pytest.mark.anyio
async def test_a_bootstrap_name_is_dialled_by_its_canonical_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, {"10.0.0.1": "gone", "10.0.0.2": "b2"})
    async with ScriptedBroker() as broker:
        net = Net(b2=broker)
        broker.on[ApiKey.METADATA] = lambda _: told("b2")
        canonical_only: dict[str, Any] = {"client_dns_lookup": "resolve_canonical_bootstrap_servers_only"}
        async with opened(net.connect, "alias:9092", **canonical_only) as cluster:
            assert net.dials == ["gone", "b2"]
            assert cluster.metadata.snapshot.nodes[1].address.host == "b2"
        with pytest.raises(NoBrokerReachable, match="unknown:9092: cannot connect to unknown:9092"):
            async with opened(net.connect, "unknown:9092", bootstrap_timeout_ms=100, **canonical_only):
                raise AssertionError("opened")

"""How pytest-xdist shares the tests out over its workers: those on Apache Kafka go to one, which boots it once."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

__all__ = ("SHARED_BY_MODULES", "Sharing", "share_out")

_WITH_SERVERS_OF_THEIR_OWN = (
    "tests/security/test_real_access.py",
    "tests/security/test_real_kafka.py",
    "tests/security/test_real_kerberos.py",
    "tests/testing/logins/test_contract_bearer_tokens.py",
    "tests/testing/logins/test_contract_sasl.py",
    "tests/testing/test_contract_old_versions.py",
)
_ON_APACHE_KAFKA = ("tests/kafka/", "tests/cli/test_demo.py", "tests/security/test_real_")
SHARED_BY_MODULES = (
    "tests/foreign/",  # a broker's process
    "tests/group/test_java_equality.py",  # a run of Java
    "tests/prometheus/test_dashboards.py",  # a Prometheus and a service
    "tests/protocol/test_import_cost.py",  # processes that import
    "tests/schema_registry/test_apicurio.py",  # a schema registry
    "tests/testing/test_tls.py",  # certificates
)
"""What a module makes once for all its tests."""


def share_out(nodeid: str) -> str:
    """The name of what goes to a worker as one: a test function with all its parameters, or more.

    Told by its name, since that is all the distributing process knows of a test. Should one on Apache Kafka not be seen
    as such, another worker boots a server of its own: that is slower, and no worse.
    """
    if "apache" in nodeid or "_on_a_cluster" in nodeid or nodeid.startswith(_ON_APACHE_KAFKA):
        module = nodeid.partition("::")[0]
        return f"apache kafka of {module}" if module in _WITH_SERVERS_OF_THEIR_OWN else "apache kafka"
    return nodeid.partition("::" if nodeid.startswith(SHARED_BY_MODULES) else "[")[0]


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # xdist publishes no types
    """What goes together as `share_out` says, the largest first; who is done takes the next."""

    def _split_scope(self, nodeid: str) -> str:
        return share_out(nodeid)

"""The settings of a command come from its options, a file and the environment, in this order."""

from pathlib import Path

import pytest

from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.shell.settings import read_settings
from aiokafkawire.cli.shell.shared_options import SharedOptions

ENVIRONMENT = {"AIOKAFKAWIRE_BOOTSTRAP": "environment:1"}


def refused(options: SharedOptions, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(CommandFailed) as error:
        read_settings(options, environment or {})
    assert error.value.status == 2
    return str(error.value)


@pytest.fixture
def properties(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text("# a file of Java's tools\nbootstrap.servers=file:1\nclient.id = of\\u0041 file\nacks=1\n")
    return str(path)


def test_the_command_line_wins_over_the_environment(properties: str) -> None:
    def servers(environment: dict[str, str], **options: object) -> str:
        return read_settings(SharedOptions(**options), environment).bootstrap_servers  # type: ignore[arg-type]

    in_environment = ENVIRONMENT | {"AIOKAFKAWIRE_CONFIG": properties}
    assert servers(ENVIRONMENT, bootstrap="option:1", config=properties) == "option:1"
    assert servers(ENVIRONMENT, bootstrap="option:1", settings=("bootstrap.servers=set:1",)) == "option:1"
    assert servers(ENVIRONMENT, config=properties, settings=("bootstrap.servers=set:1",)) == "set:1"
    assert servers(ENVIRONMENT, config=properties) == "file:1"
    assert servers(in_environment) == "environment:1"
    assert servers({"AIOKAFKAWIRE_CONFIG": properties}) == "file:1"


def test_the_order_holds_between_two_names_of_a_setting(properties: str, tmp_path: Path) -> None:
    librdkafka = tmp_path / "librdkafka.properties"
    librdkafka.write_text("metadata.broker.list=file:1\nrequest.required.acks=1\n")
    by_option = SharedOptions(settings=("metadata.broker.list=set:1",))
    assert read_settings(by_option, ENVIRONMENT).bootstrap_servers == "set:1"
    assert read_settings(SharedOptions(config=str(librdkafka)), ENVIRONMENT).bootstrap_servers == "file:1"
    assert read_settings(SharedOptions(), ENVIRONMENT | {"AIOKAFKAWIRE_CONFIG": str(librdkafka)}).bootstrap_servers == (
        "environment:1"
    )
    other_name = SharedOptions(config=properties, settings=("request.required.acks=0",))
    assert read_settings(other_name, {}).producer == {"acks": 0}
    assert read_settings(SharedOptions(config=str(librdkafka), settings=("acks=0",)), {}).producer == {"acks": 0}


def test_settings_reach_the_client_its_producers_and_consumers(properties: str) -> None:
    options = SharedOptions(config=properties, settings=("client.id=set", "isolation.level=read_committed"))
    settings = read_settings(options, {})
    assert settings.client == {"client_id": "set"}
    assert settings.producer == {"acks": 1}
    assert settings.consumer == {"isolation_level": "read_committed"}


def test_the_timeout_bounds_connecting_requests_and_deliveries() -> None:
    settings = read_settings(SharedOptions(bootstrap="h:1", timeout=1.5, settings=("max.block.ms=9",)), {})
    assert settings.client == {"bootstrap_timeout_ms": 1500, "default_api_timeout_ms": 1500}
    assert settings.producer == {"max_block_ms": 1500, "delivery_timeout_ms": 1500}


def test_wrong_settings_are_wrong_usage(tmp_path: Path) -> None:
    assert refused(SharedOptions(settings=("client.id",)), ENVIRONMENT) == "-X takes KEY=VALUE, got 'client.id'"
    assert "did you mean linger.ms" in refused(SharedOptions(settings=("lingr.ms=5",)), ENVIRONMENT)
    missing = str(tmp_path / "none.properties")
    assert refused(SharedOptions(config=missing)) == f"cannot read the settings in {missing}: No such file or directory"
    assert refused(SharedOptions(config="cleanup.policy=compact")).endswith("a topic's --topic-config KEY=VALUE")
    binary = tmp_path / "binary.properties"
    binary.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refused(SharedOptions(config=str(binary)))
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    assert refused(SharedOptions(config=str(broken))).startswith(f"{broken}: line 1 ")

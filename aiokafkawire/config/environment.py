"""Reads properties from environment variables, such as ``KAFKA_BOOTSTRAP_SERVERS`` for ``bootstrap.servers``."""

from collections.abc import Mapping

from .properties import is_property

__all__ = ("properties_from_environment",)


def properties_from_environment(environment: Mapping[str, str], prefix: str = "KAFKA_") -> dict[str, str]:
    """Return the properties in the variables that begin with ``prefix``, for :func:`.properties.settings_from`.

    The rest of the name, in lower case and with dots for underscores, is the property: ``KAFKA_SASL_USERNAME`` is
    ``sasl.username``. Variables that are no property, such as ``KAFKA_HEAP_OPTS`` of Kafka's scripts, are left out.

    Args:
        environment: the variables, such as ``os.environ``.
        prefix: the beginning of the names.
    """
    found = {
        name.removeprefix(prefix).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(prefix)
    }
    return {name: value for name, value in found.items() if is_property(name)}

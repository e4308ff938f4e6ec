"""An in-process Kafka broker for tests, demos and benchmarks, and a cluster in virtual time; see docs/broker.md."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ..error_codes import ErrorCode
    from ..protocol.api import ApiKey
    from .background import BackgroundBroker
    from .broker import ApiError, Broker, UnusedFaultRules
    from .cluster.replicas import HostedPartition
    from .controllers import Controllers
    from .faults.request_log import LoggedRequest, RequestLog, RequestOutcome
    from .faults.rules import FaultRule, Hold
    from .legacy.server import LegacyServer
    from .logs.log import PartitionLog
    from .schema_registry.server import SchemaRegistryServer
    from .security.bearer_tokens import BearerToken, TokenRefused
    from .simulation import Run, Simulation, simulate
    from .tap.background_tap import BackgroundTap
    from .tap.tap import Tap
    from .tap.tap_events import TapNotice, TappedRequest, TappedResponse

__all__ = (
    "ApiError",
    "ApiKey",
    "BackgroundBroker",
    "BackgroundTap",
    "BearerToken",
    "Broker",
    "Controllers",
    "ErrorCode",
    "FaultRule",
    "Hold",
    "HostedPartition",
    "LegacyServer",
    "LoggedRequest",
    "PartitionLog",
    "RequestLog",
    "RequestOutcome",
    "Run",
    "SchemaRegistryServer",
    "Simulation",
    "Tap",
    "TapNotice",
    "TappedRequest",
    "TappedResponse",
    "TokenRefused",
    "UnusedFaultRules",
    "simulate",
)

_MODULES = {
    "ApiError": ".broker",
    "ApiKey": "..protocol.api",
    "ErrorCode": "..error_codes",
    "BackgroundBroker": ".background",
    "BackgroundTap": ".tap.background_tap",
    "BearerToken": ".security.bearer_tokens",
    "Broker": ".broker",
    "Controllers": ".controllers",
    "FaultRule": ".faults.rules",
    "Hold": ".faults.rules",
    "HostedPartition": ".cluster.replicas",
    "LegacyServer": ".legacy.server",
    "LoggedRequest": ".faults.request_log",
    "PartitionLog": ".logs.log",
    "RequestLog": ".faults.request_log",
    "RequestOutcome": ".faults.request_log",
    "Run": ".simulation",
    "SchemaRegistryServer": ".schema_registry.server",
    "Simulation": ".simulation",
    "Tap": ".tap.tap",
    "TapNotice": ".tap.tap_events",
    "TappedRequest": ".tap.tap_events",
    "TappedResponse": ".tap.tap_events",
    "TokenRefused": ".security.bearer_tokens",
    "UnusedFaultRules": ".broker",
    "simulate": ".simulation",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)

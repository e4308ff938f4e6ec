"""The admin: the methods for each subject, and lookups of offsets.

Each subject has a module here: :mod:`.acls`, :mod:`.topics`, :mod:`.partitions`, :mod:`.log_dirs`, :mod:`.groups`,
:mod:`.share_groups`, :mod:`.streams_groups`, :mod:`.transactions`, :mod:`.configs`, :mod:`.cluster`, :mod:`.features`
:mod:`.quorum`, :mod:`.users`, :mod:`.quotas` and :mod:`.delegation_tokens`.
"""

from collections.abc import Mapping

from ..cluster.list_offsets import look_up_offsets
from ..cluster.metrics_push import MetricsPush
from ..other_clients_names import ADMIN, add_hints
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition, normalize_specs
from .acls import AclAdmin
from .cluster import ClusterAdmin
from .configs import ConfigAdmin
from .delegation_tokens import DelegationTokenAdmin
from .features import FeatureAdmin
from .groups import GroupAdmin
from .log_dirs import LogDirAdmin
from .partitions import PartitionAdmin
from .quorum import QuorumAdmin
from .quotas import QuotaAdmin
from .share_groups import ShareGroupAdmin
from .streams_groups import StreamsGroupAdmin
from .topics import TopicAdmin
from .transactions import TransactionAdmin
from .users import UserAdmin

__all__ = ("Admin",)


class Admin(
    TopicAdmin,
    PartitionAdmin,
    LogDirAdmin,
    GroupAdmin,
    ShareGroupAdmin,
    StreamsGroupAdmin,
    TransactionAdmin,
    ConfigAdmin,
    ClusterAdmin,
    FeatureAdmin,
    QuorumAdmin,
    UserAdmin,
    QuotaAdmin,
    DelegationTokenAdmin,
    AclAdmin,
    MetricsPush,
):
    """The administration client, at :attr:`Client.admin`.

    Every ``timeout`` is in seconds, by default ``default_api_timeout_ms``; when it has passed, the call raises
    RequestTimeout, or the error of the brokers' last answer about a resource, such as NotController.
    """

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: the beginning, the end, or the first at or after a time; None if no record is that late.

        Brokers before 0.10.1 index time by segment: an offset by time is then up to one segment
        (``log.segment.bytes``) too early, never too late, and has no timestamp (-1). If no record is at or after the
        time, these brokers return the end.

        Raises:
            TopicNotReady: a partition has no leader within the timeout.
            UsageError: a partition does not exist.
        """
        return await look_up_offsets(self._cluster, normalize_specs(specs), self._deadline(timeout))


add_hints(Admin, ADMIN)

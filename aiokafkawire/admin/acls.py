"""The admin's methods for ACLs. The first call imports the classes of ACLs and their messages."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .admin_base import AdminBase

if TYPE_CHECKING:
    from .acl_bindings import AclBinding, AclBindingFilter

__all__ = ("AclAdmin",)


class AclAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for ACLs (KIP-140), which brokers with an authorizer store and enforce."""

    async def create_acls(self, acls: "Iterable[AclBinding] | AclBinding", *, timeout: float | None = None) -> None:
        """Create an ACL or several ACLs; one that exists already stays.

        Brokers enforce a new ACL a moment later.

        Args:
            acls: such as ``[AclBinding(ResourcePattern.topic("orders"), "User:alice", AclOperation.READ)]``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            SecurityDisabled: the brokers have no authorizer.
            ClusterAuthorizationFailed: you may not alter the cluster.
            InvalidRequest, ...: a broker rejected the only ACL.
            AdminError: a broker rejected some of several ACLs; ``errors`` has the error of each.
            UnsupportedVersion: a broker is too old.
            UsageError: an ACL is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .acl_checks import checked_bindings
        from .acl_requests import create_acls

        bindings, deadline = checked_bindings(acls), self._deadline(timeout)
        if bindings:
            await create_acls(self._cluster, bindings, deadline)

    async def describe_acls(
        self,
        filter: "AclBindingFilter | None" = None,  # noqa: A002  # its name in Java
        *,
        timeout: float | None = None,
    ) -> "list[AclBinding]":
        """Return the ACLs that a filter finds, or all ACLs, sorted by resource and principal.

        Raises:
            SecurityDisabled: the brokers have no authorizer.
            ClusterAuthorizationFailed: you may not describe the cluster.
            UnsupportedVersion: a broker is too old.
            UsageError: the filter is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .acl_bindings import AclBindingFilter
        from .acl_checks import checked_filter
        from .acl_requests import describe_acls

        wanted = AclBindingFilter() if filter is None else checked_filter(filter)
        return await describe_acls(self._cluster, wanted, self._deadline(timeout))

    async def delete_acls(
        self, filters: "Iterable[AclBindingFilter] | AclBindingFilter", *, timeout: float | None = None
    ) -> "dict[AclBindingFilter, list[AclBinding]]":
        """Delete the ACLs that a filter or several filters find; return the deleted ones by filter, sorted.

        ``AclBindingFilter()`` deletes all ACLs. An ACL that several filters find is in the result of each of them. If
        the answer is lost, the request is sent again, and the result lacks what the first attempt has deleted.

        Raises:
            SecurityDisabled: the brokers have no authorizer.
            ClusterAuthorizationFailed: you may not alter the cluster.
            InvalidRequest, ...: a broker rejected the only filter.
            AdminError: a broker rejected some of several filters, or did not delete some of several ACLs that a filter
                found; ``errors`` has the error of each filter and of each ACL, and ``results`` the deleted ACLs.
            UnsupportedVersion: a broker is too old.
            UsageError: a filter is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .acl_checks import checked_filters
        from .acl_requests import delete_acls

        wanted, deadline = checked_filters(filters), self._deadline(timeout)
        return await delete_acls(self._cluster, wanted, deadline) if wanted else {}

"""The real ZooKeeper of these tests."""

from support.zookeeper import zookeeper

__all__ = ("zookeeper",)

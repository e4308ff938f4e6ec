"""The common base of the blocking admin's methods: the thread with the event loop, and the asynchronous admin."""

from ..client import Client as AsyncClient
from ..loop_thread import LoopThread

__all__ = ("AdminBase",)


class AdminBase:
    """The asynchronous admin, whose methods run on the loop's thread."""

    def __init__(self, loop: LoopThread, client: AsyncClient) -> None:
        self._loop, self._admin = loop, client.admin

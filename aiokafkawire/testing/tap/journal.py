"""The journal of a tap: a pcap file of the bytes that clients sent and received, for ``aiokafkawire wire --file``."""

import logging
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...protocol.primitives import Buffer
from ...types import Address
from .pcap_packets import FILE_HEADER, CapturedConnection, packet_record

__all__ = ("Journal", "JournalConnection")

_log = logging.getLogger(__name__)


class Journal:
    """A pcap file that grows while clients are connected; it has the credentials that clients send, too.

    The file can be read by its owner only, also if it was there before with other permissions. Packets are written at
    once, so that the file can be read meanwhile. If the file cannot be written, as on a full disk, the journal ends,
    and the traffic goes on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def open(self) -> None:
        """Create the file, in place of an older one; raise OSError if it cannot be created and written."""
        no_wait: int = getattr(os, "O_NONBLOCK", 0)  # a pipe without a reader is then an error, and does not block
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | no_wait, 0o600)
        if no_wait:
            os.set_blocking(descriptor, True)
        file = os.fdopen(descriptor, "wb")
        try:
            if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, 0o600)  # fails if the file is another user's, who could read it
            file.write(FILE_HEADER)
            file.flush()
        except OSError as error:
            with suppress(OSError):
                file.close()  # which writes again what could not be written
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        self._file = file

    def close(self) -> None:
        """Close the file, unless it is closed."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                _log.error("cannot write the journal %s: %s", self._path, error)

    def connection(self, client: Address, server: Address) -> "JournalConnection":
        """Start a connection between a client and an address of the tap."""
        return JournalConnection(self, CapturedConnection(client, server))

    def append(self, packets: Iterable[bytes]) -> None:
        """Append packets, with the current time; do nothing if the file is closed."""
        if self._file is not None:
            now = time.time()
            self._write(b"".join(packet_record(packet, now) for packet in packets))

    def _write(self, data: bytes) -> None:
        file = self._file
        assert file is not None
        try:
            file.write(data)
            file.flush()
        except OSError as error:
            _log.error("cannot write the journal %s, which ends here: %s", self._path, error)
            self._file = None
            with suppress(OSError):
                file.close()


class JournalConnection:
    """One connection in the journal."""

    def __init__(self, journal: Journal, captured: CapturedConnection) -> None:
        self._journal, self._captured = journal, captured
        self._is_closed = False
        journal.append(captured.opening())

    def sent(self, data: Buffer, *, by_client: bool) -> None:
        """Write bytes that one side sent."""
        self._journal.append(self._captured.sent(data, by_client=by_client))

    def closed(self, *, by_client: bool) -> None:
        """Write the end of the connection, unless it has ended."""
        if not self._is_closed:
            self._is_closed = True
            self._journal.append(self._captured.closing(by_client=by_client))

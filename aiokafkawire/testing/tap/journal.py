"""The journal of a tap: a pcap file of the bytes that clients sent and received, for ``aiokafkawire wire --file``."""

import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ...protocol.primitives import Buffer
from ...types import Address
from .pcap_packets import FILE_HEADER, CapturedConnection, packet_record

__all__ = ("Journal", "JournalConnection")

_log = logging.getLogger(__name__)


class Journal:
    """A pcap file that grows while clients are connected; it has the credentials that clients send, too.

    A new file can be read by its owner only. Packets are written at once, so that the file can be read meanwhile. If
    the file cannot be written, as on a full disk, the journal ends, and the traffic goes on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def open(self) -> None:
        """Create the file, in place of an older one; raise OSError if this is impossible."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._write(FILE_HEADER)

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
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            _log.error("cannot write the journal %s, which ends here: %s", self._path, error)
            self.close()


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

"""The process between two network namespaces: it forwards packets by the rules, and answers as their name server.

It starts in the namespace of the brokers, and makes that of a client. Its standard input takes orders, a line of JSON
each: ``{"rules": {}}``, ``{"forget": true}``, ``{"zone": {}}``, ``{"mood": "fails"}``. It answers each with a line.
All that it has made ends with it.
"""

import ctypes
import fcntl
import heapq
import json
import math
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from benchmarks.network_faults.link import OPPOSITE, Crossing, Direction, Link, rules_of
from benchmarks.network_faults.names import Mood, answer

NEW_MOUNTS: Final = 0x00020000
_NEW_NETWORK: Final = 0x40000000
_CONGESTION_CONTROL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_SET_INTERFACE: Final = 0x400454CA
_TUN_WITHOUT_HEADER: Final = 0x1001
_MTU: Final = 1500
_PACKET: Final = 2048


def unshare(flags: int) -> None:
    """Leave namespaces for new ones.

    :raises OSError: the system does not allow it.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def enter_new_network(more: int = 0) -> None:
    """Enter a network namespace of this process's own, and with ``more`` other namespaces.

    TCP paces itself there as on most systems, whatever this one does, if this one allows that; see
    ``congestion_control``.

    :raises OSError: the system does not allow it.
    """
    unshare(_NEW_NETWORK | more)
    with suppress(OSError):  # the system does not list it in tcp_allowed_congestion_control
        _CONGESTION_CONTROL.write_text("cubic")


def congestion_control() -> str:
    """Return how TCP paces itself in the network namespace of this process."""
    return _CONGESTION_CONTROL.read_text().strip()


def run_ip(*commands: str) -> None:
    """Run commands of ``ip``.

    :raises subprocess.CalledProcessError: one of them failed.
    """
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True, capture_output=True)


def open_tun(name: str) -> int:
    """Make an interface in this namespace whose packets are read and written here; return its descriptor.

    :raises OSError: the system does not allow it.
    """
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(made, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), _TUN_WITHOUT_HEADER))
    return made


class Emulator:
    """Forwards packets until its orders end. The addresses of its clients contain ``number``."""

    def __init__(self, number: int, folder: Path, seed: int) -> None:
        self._link = Link(seed)
        self._zone: dict[str, list[str]] = {}
        self._mood: Mood = "answers"
        self._waiting: list[tuple[float, int, Direction, bytes]] = []
        self._numbers = count()
        self._orders = b""
        self._from = self._join(number, folder)
        """The descriptor from which the packets of each direction are read; those of the other are written there."""
        self._names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._names.bind(("127.0.0.1", 53))
        self._names.setblocking(False)

    def _join(self, number: int, folder: Path) -> dict[Direction, int]:
        """Make both ends of the link, and enter the namespace of the clients."""
        at_brokers, at_clients = f"akw-clients{number}", "akw-brokers"
        to_clients = open_tun(at_brokers)
        run_ip(
            f"link set {at_brokers} mtu {_MTU} up",
            f"route add 10.66.{number}.0/24 dev {at_brokers}",
            f"-6 route add fd66:{number}::/64 dev {at_brokers}",
        )
        enter_new_network(NEW_MOUNTS)
        to_brokers = open_tun(at_clients)
        run_ip(
            "link set lo up",
            f"link set {at_clients} mtu {_MTU} up",
            f"addr add 10.66.{number}.1/32 dev {at_clients}",
            f"route add 10.66.0.0/24 dev {at_clients}",
            f"-6 addr add fd66:{number}::1/128 dev {at_clients} nodad",
            f"-6 route add fd66::/64 dev {at_clients}",
        )
        _use_files(folder)
        return {"to_clients": to_clients, "to_brokers": to_brokers}

    def run(self) -> None:
        """Forward, resolve and obey until standard input ends."""
        with selectors.DefaultSelector() as ready:
            for direction, source in self._from.items():
                ready.register(source, selectors.EVENT_READ, direction)
            ready.register(self._names, selectors.EVENT_READ, "names")
            ready.register(0, selectors.EVENT_READ, "orders")
            while True:
                soon = self._waiting[0][0] - time.monotonic() if self._waiting else None
                for key, _ in ready.select(None if soon is None else max(soon, 0.0)):
                    if key.data == "orders":
                        if not self._obey():
                            return
                    elif key.data == "names":
                        self._resolve()
                    else:
                        self._forward(key.fd, key.data)
                self._deliver(time.monotonic())

    def _forward(self, source: int, direction: Direction) -> None:
        while True:
            try:
                data = os.read(source, _PACKET)
            except BlockingIOError:
                return
            now = time.monotonic()
            for crossing in self._link.offer(direction, data, now):
                if crossing.at <= now:
                    self._write(crossing.direction, crossing.data)
                else:
                    self._hold(crossing)

    def _hold(self, crossing: Crossing) -> None:
        heapq.heappush(self._waiting, (crossing.at, next(self._numbers), crossing.direction, crossing.data))

    def _deliver(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            _, _, direction, data = heapq.heappop(self._waiting)
            self._write(direction, data)

    def _write(self, direction: Direction, data: bytes) -> None:
        try:
            os.write(self._from[OPPOSITE[direction]], data)
        except OSError:
            return  # the interface takes no more, or not this packet: it is lost, as on any network

    def _resolve(self) -> None:
        query, asker = self._names.recvfrom(_PACKET)
        response = answer(query, self._zone, self._mood)
        if response is not None:
            self._names.sendto(response, asker)

    def _obey(self) -> bool:
        given = os.read(0, 65_536)
        *lines, self._orders = (self._orders + given).split(b"\n")
        for line in lines:
            self._do(json.loads(line))
            os.write(1, b"done\n")
        return bool(given)

    def _do(self, order: dict[str, Any]) -> None:
        if "rules" in order:
            self._link.change(rules_of(order["rules"]))
            self._deliver(math.inf)
        if "zone" in order:
            self._zone = order["zone"]
        if "mood" in order:
            self._mood = order["mood"]
        if order.get("forget"):
            self._link.forget()


def _use_files(folder: Path) -> None:
    """Let programs of this namespace resolve names by the emulator; the files of other namespaces stay as they are."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    files = {
        "resolv.conf": "nameserver 127.0.0.1\n",
        "hosts": "127.0.0.1 localhost\n",
        "nsswitch.conf": "hosts: files dns\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        if Path("/etc", name).exists():
            subprocess.run(["mount", "--bind", folder / name, f"/etc/{name}"], check=True)


def main() -> None:
    number, folder, seed = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    emulator = Emulator(number, folder, seed)
    os.write(1, b"ready\n")
    emulator.run()


if __name__ == "__main__":
    main()

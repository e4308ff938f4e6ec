"""The network of a run: this process enters a namespace for the brokers, and each client has a link to it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.machine import ROOT
from benchmarks.network_faults.emulator import enter_new_network, run_ip
from benchmarks.network_faults.link import Rules
from benchmarks.network_faults.names import Mood

BROKERS: Final = (1, 2, 3)
_TOOLS: Final = ("ip", "nsenter", "mount")
_TRIAL: Final = (
    "from benchmarks.network_faults.emulator import *; enter_new_network(); "
    "run_ip('link set lo up'); open_tun('trial'); enter_new_network(NEW_MOUNTS)"
)


def missing() -> str | None:
    """Return what this machine lacks for namespaces with links, or None."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found: on Debian, apt-get install iproute2 util-linux mount"
    if os.geteuid() != 0:
        return "network namespaces need root (CAP_NET_ADMIN and CAP_SYS_ADMIN)"
    tried = subprocess.run([sys.executable, "-c", _TRIAL], cwd=ROOT, capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"network namespaces or /dev/net/tun are not allowed here: {tried.stderr.strip().splitlines()[-1]}"
    return None


def name_of(node: int) -> str:
    """Return the name by which clients know a broker."""
    return f"broker-{node}.test"


def addresses_of(node: int, move: int = 0) -> tuple[str, str]:
    """Return a broker's addresses, IPv4 and IPv6, after it has moved so many times."""
    last = node + 10 * move
    return f"10.66.0.{last}", f"fd66::{last}"


def enter_network_of_brokers(moves: int) -> None:
    """Enter a new namespace, for good, with the addresses of the brokers, which may move so many times.

    Processes that this one starts afterwards are in it too.
    """
    enter_new_network()
    own = [one for node in BROKERS for move in range(moves + 1) for one in addresses_of(node, move)]
    run_ip(
        "link set lo up",
        *(f"-6 addr add {one}/128 dev lo nodad" if ":" in one else f"addr add {one}/32 dev lo" for one in own),
    )


class ClientNetwork:
    """The namespace of one client, and its link to the brokers, from the start to the end of the ``with`` block."""

    def __init__(self, number: int, seed: int) -> None:
        self._number, self._seed = number, seed

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="aiokafkawire-network-")
        command = [sys.executable, "-m", "benchmarks.network_faults.emulator", str(self._number), self._folder.name]
        self._process = subprocess.Popen(
            [*command, str(self._seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self._expect(b"ready\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def within(self) -> list[str]:
        """Return the beginning of a command that runs here."""
        return ["nsenter", "--target", str(self._process.pid), "--net", "--mount", f"--wd={ROOT}"]

    def use(self, rules: Rules, *, forget: bool = False) -> None:
        """Let the link obey other rules from now on, and forget all flows with ``forget``."""
        self._order({"rules": rules.as_json(), "forget": forget})

    def resolve(self, zone: Mapping[str, Sequence[str]], mood: Mood = "answers") -> None:
        """Let these names be resolved from now on."""
        self._order({"zone": {name: list(found) for name, found in zone.items()}, "mood": mood})

    def _order(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        self._expect(b"done\n")

    def _expect(self, wanted: bytes) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if said != wanted:
            raise RuntimeError(f"the emulator of the link said {said!r} instead of {wanted!r}; it has written why")


def zone(family: str = "both", moves: Mapping[int, int] | None = None) -> dict[str, list[str]]:
    """Return the names of all brokers with their addresses: of IPv4, of IPv6 or of both, after some have moved."""
    found: dict[str, list[str]] = {}
    for node in BROKERS:
        fourth, sixth = addresses_of(node, (moves or {}).get(node, 0))
        found[name_of(node)] = {"4": [fourth], "6": [sixth], "both": [fourth, sixth]}[family]
    return found

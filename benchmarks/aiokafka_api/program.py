"""The measured program: that of aiokafka in other benchmarks; its ``import aiokafka`` finds one of the two packages."""

import sys

from aiokafkawire.aiokafka import install
from benchmarks.aiokafka_api.job import OURS


def main() -> None:
    """Run the job of the first argument, on the package of the second."""
    if sys.argv[2] == OURS:
        install()
    from benchmarks.clients import aiokafka_peer

    aiokafka_peer.main()


if __name__ == "__main__":
    main()

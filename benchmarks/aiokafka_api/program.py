"""Run a program of aiokafka on our package: ``python -m benchmarks.aiokafka_api.program MODULE ARGUMENTS``."""

import runpy
import sys

from aiokafkawire.aiokafka import install
from benchmarks.contenders import DROP_IN


def command_on(client: str, module: str) -> list[str]:
    """Return the command that runs a client's module, to which its arguments may be added."""
    on_ours = ["benchmarks.aiokafka_api.program"] if client == DROP_IN else []
    return [sys.executable, "-m", *on_ours, module]


def main() -> None:
    """Run the module of the first argument; its ``import aiokafka`` finds our package."""
    install()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

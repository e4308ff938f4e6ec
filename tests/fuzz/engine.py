"""Hands one target to Atheris, with the package and the functions that it compiles instrumented.

``python -m fuzz.engine TARGET [libFuzzer's options] [corpus directory or files to replay]``
"""

import sys
from importlib import import_module
from typing import Any

import atheris

with atheris.instrument_imports(include=["aiokafkawire"]):
    from fuzz.targets import TARGETS

    from aiokafkawire.protocol import compiler
    from aiokafkawire.protocol.source_builder import Unit

    import_module("aiokafkawire.records.message_set")  # loaded on first use, which would be past the hook


def _instrument_compiled() -> None:
    """Codecs are made by exec, past the import hook, and are what coverage must guide through."""
    compile_plainly = compiler._compile

    def compile_instrumented(unit: Unit, name: str) -> tuple[Unit, Any]:
        return unit, atheris.instrument_func(compile_plainly(unit, name)[1])

    compiler._compile = compile_instrumented


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    _instrument_compiled()
    compiler._decoders.clear()  # what the target's own set-up has compiled already
    compiler._encoders.clear()

    def one(data: bytes) -> None:
        target(data)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

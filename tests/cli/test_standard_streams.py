"""The command with standard streams closed, as daemons are started: no traceback, and a status that says what was."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.examples import sampled
from support.patience import PATIENCE

EXE = shlex.quote(str(Path(sys.executable).with_name("aiokafkawire")))
FRAME = "000000230012000300000007000464656d6f000d61696f6b61666b617769726506302e312e3000"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("wire <&-", 2, "aiokafkawire: standard input is closed: pass the bytes as arguments or with --file\n"),
        ("wire <&- >&-", 1, "aiokafkawire: standard output is closed, so the decoded bytes cannot be written\n"),
        (f"wire {FRAME} <&-", 0, ""),
        (
            f"wire {FRAME} >&-",
            1,
            "aiokafkawire: standard output is closed, so the decoded bytes cannot be written\n",
        ),
        (f"wire {FRAME} >&- 2>&-", 1, ""),
        (f"wire {FRAME} 2>&-", 0, ""),
        ("wire zz 2>&-", 1, ""),
        ("--version >&-", 0, ""),
        ("--help <&- >&- 2>&-", 0, ""),
        ("2>&-", 2, ""),
    ],
)
def test_no_traceback(command: str, status: int, told: str) -> None:
    done = subprocess.run(
        f"{EXE} {command}", shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (status, told)


def wait_until_it_catches(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Wait for the process's own handler of the signal; where no file tells of it, for two seconds."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        return
    for _ in range(3_000):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        if int(fields["SigCgt"], 16) & 1 << (number - 1):
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError(f"it catches no {number.name}")


@pytest.mark.parametrize("closed", sampled([">&-", "<&- >&- 2>&-"], "<&- >&- 2>&-"))
def test_a_broker_runs_without_them(closed: str, tmp_path: Path) -> None:
    # A topic's name that cannot be ends it at once, so that it is known to have begun; else it runs until SIGTERM.
    refused = subprocess.run(f"{EXE} broker --port 0 --topic a/b {closed}", shell=True, timeout=PATIENCE)
    assert refused.returncode == 2
    script = f"exec {EXE} broker --port 0 {closed}"
    with subprocess.Popen(["/bin/sh", "-c", script], stderr=subprocess.PIPE) as broker:
        wait_until_it_catches(broker, signal.SIGTERM)
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(30) == 0
        assert broker.stderr is not None
        assert broker.stderr.read() == b""

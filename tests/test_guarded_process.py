"""The servers of the tests end with them; here they are shells."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.guarded_process import BootFailed, GuardedProcess, tail
from support.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups on Windows")

ORDERLY = "trap 'echo good-bye; exit 0' TERM"


def shell(folder: Path, script: str) -> GuardedProcess:
    return GuardedProcess(["sh", "-c", script], folder / "server.log")


def held_open(folder: Path, script: str = ":") -> tuple[GuardedProcess, Path]:
    """A server with a child; the pipe has an end when neither is left."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    return shell(folder, f"{script}; exec 3>{pipe}; sleep 600 & echo up; while :; do sleep 0.05; done"), pipe


def says(server: GuardedProcess, what: str) -> bool:
    return what in tail(server.log)


def test_a_killed_server_takes_what_it_has_started_with_it(tmp_path: Path) -> None:
    server, pipe = held_open(tmp_path)
    server.launch()
    with pipe.open("rb") as end:
        server.wait_until(lambda: says(server, "up"), "the shell", 30)
        assert server.runs
        server.kill()
        assert end.read() == b""
    assert not server.runs
    assert server.status is None
    server.kill()


def test_a_server_does_not_outlive_a_killed_test_run(tmp_path: Path) -> None:
    server, pipe = held_open(tmp_path)
    run = (
        "import os; from pathlib import Path; from support.guarded_process import GuardedProcess\n"
        f"server = GuardedProcess({server.command!r}, Path({str(server.log)!r}))\n"
        # Killed before, the shell would never open the pipe, and whoever reads it would wait for that.
        "server.launch(); server.wait_until(lambda: 'up' in server.log.read_text(), 'the shell', 30)\n"
        "os.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", run], env=environment) as killed, pipe.open("rb") as end:
        assert killed.wait(PATIENCE) == -9
        assert end.read() == b""


def test_a_server_may_end_in_order_and_be_launched_again(tmp_path: Path) -> None:
    server, _ = held_open(tmp_path, ORDERLY)
    for _ in range(2):
        server.log.unlink(missing_ok=True)
        server.launch()
        with (tmp_path / "pipe").open("rb"):
            server.wait_until(lambda: says(server, "up"), "the shell", 30)
            server.end(30)
        assert says(server, "good-bye")


def test_who_does_not_end_in_order_is_killed(tmp_path: Path) -> None:
    server, pipe = held_open(tmp_path, "trap '' TERM")
    server.launch()
    with pipe.open("rb") as end:
        server.wait_until(lambda: says(server, "up"), "the shell", 30)
        server.end(0)
        assert end.read() == b""


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = shell(tmp_path, "echo no such disk >&2; exit 3")
    server.launch()
    with pytest.raises(BootFailed, match=r"^the shell exited with status 3:\nno such disk$"):
        server.wait_until(lambda: False, "the shell", 30)
    assert server.status == 3
    server.kill()


def test_who_waits_for_a_server_gives_up(tmp_path: Path) -> None:
    server = shell(tmp_path, "sleep 600")
    server.launch()
    with pytest.raises(BootFailed, match="the shell was not ready after 0 s"):
        server.wait_until(lambda: False, "the shell", 0)
    server.kill()

"""A Kerberos of the tests' own: MIT's KDC (Debian: krb5-kdc, krb5-admin-server, krb5-user), on a free port.

with Kerberos(folder) as kerberos:
    kerberos.ticket("alice")
    ...  # with the environment of kerberos.environment
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ("Kerberos", "missing_kerberos")

REALM = "AIOKAFKAWIRE.TEST"
_TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_SECONDS = 30.0


def missing_kerberos() -> str | None:
    """What this machine lacks for a KDC and a client of it, as a sentence; None when nothing."""
    lacks = [f"no `{tool}` (Debian: krb5-kdc, krb5-admin-server, krb5-user)" for tool in _TOOLS if not _where(tool)]
    if find_spec("gssapi") is None:
        lacks.append("no Python library gssapi (aiokafkawire[kerberos], over Debian's libkrb5-dev)")
    return "GSSAPI tests need a KDC and a client: " + ", ".join(lacks) if lacks else None


class Kerberos:
    """A realm that lives in a folder; clients of it need its :attr:`environment`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kdc: subprocess.Popen[bytes] | None = None
        self.conf = folder / "krb5.conf"
        self.environment = {
            "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
        }

    def __enter__(self) -> Self:
        port = _free_port()
        self._configure(port)
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-password")
        # In the foreground, so that it ends with us.
        log = (self._folder / "kdc.out").open("wb")
        with log:
            self._kdc = subprocess.Popen(
                [str(_where("krb5kdc")), "-n"],
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_ready(port)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._kdc is not None:
            self._kdc.kill()
            self._kdc.wait()

    def keytab(self, principal: str) -> Path:
        """A new principal of the realm, and the file with its key."""
        path = self._folder / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def ticket(self, principal: str, *, life: str = "10m") -> None:
        """Have whoever has the :attr:`environment` be this principal, which is new."""
        self._run("kinit", "-l", life, "-k", "-t", str(self.keytab(principal)), principal)

    def _configure(self, port: int) -> None:
        self.conf.write_text(f"""\
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{port}
  }}
""")
        (self._folder / "kdc.conf").write_text(f"""\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {REALM} = {{
    database_name = {self._folder}/principal
    key_stash_file = {self._folder}/stash
    acl_file = {self._folder}/kadm5.acl
  }}
""")

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(_where(tool)), *arguments]
        environment = os.environ | self.environment
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
        assert done.returncode == 0, f"{tool}: {done.stderr}{done.stdout}"

    def _wait_ready(self, port: int) -> None:
        assert self._kdc is not None
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._kdc.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        told = (self._folder / "kdc.out").read_text(errors="replace")
        raise AssertionError(f"the KDC does not listen: {told}")


def _where(tool: str) -> str | None:
    return shutil.which(tool, path=_PATH)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])

"""A Kerberos of the tests' own: MIT's KDC (Debian: krb5-kdc, krb5-admin-server, krb5-user), on a free port.

with Kerberos(folder) as kerberos:
    kerberos.ticket("alice")
    ...  # with the environment of kerberos.environment
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from .guarded_process import GuardedProcess, Server
from .ports import accepts, free_ports

__all__ = ("Kerberos", "missing_kerberos")

REALM = "AIOKAFKAWIRE.TEST"
_TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_SECONDS = 240.0


def missing_kerberos() -> str | None:
    """What this machine lacks for a KDC and a client of it, as a sentence; None when nothing."""
    lacks = [f"no `{tool}` (Debian: krb5-kdc, krb5-admin-server, krb5-user)" for tool in _TOOLS if not _where(tool)]
    if find_spec("gssapi") is None:
        lacks.append("no Python library gssapi (aiokafkawire[kerberos], over Debian's libkrb5-dev)")
    return "GSSAPI tests need a KDC and a client: " + ", ".join(lacks) if lacks else None


class Kerberos(Server):
    """A realm that lives in a folder; clients of it need its :attr:`environment`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kdc: GuardedProcess | None = None
        self.conf = folder / "krb5.conf"
        self.environment = {
            "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
        }

    def start(self) -> Self:
        (port,) = free_ports(1)
        self._configure(port)
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-password")
        self._kdc = GuardedProcess([str(_where("krb5kdc")), "-n"], self._folder / "kdc.out", self.environment)
        self._kdc.launch()
        try:
            self._kdc.wait_until(lambda: accepts(port), "the KDC", _SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        if self._kdc is not None:
            self._kdc.kill()

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


def _where(tool: str) -> str | None:
    return shutil.which(tool, path=_PATH)

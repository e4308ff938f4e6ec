"""Certificates that are renewed while a client runs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.securing import KEY, Papers, make_papers

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.network import tls_context
from aiokafkawire.network.tls_connector import Tls
from aiokafkawire.runtime import Runtime


def write(papers: Papers, issued: trustme.LeafCert) -> None:
    Path(papers.certificate).write_bytes(issued.cert_chain_pems[0].bytes())
    Path(papers.key).write_bytes(issued.private_key_pem.bytes())


@pytest.mark.anyio
async def test_files_that_become_valid_without_another_change_are_used_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new certificate may begin a moment later by this machine's clock."""
    mine = make_papers(tmp_path)
    tls = Tls(make_config(ClientConfig, mine.client(shows=True)), Runtime().offload)
    before = await tls.context()
    begins = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    issued = mine.authority.issue_cert("a@localhost", not_before=begins, key_type=KEY)
    write(mine, issued)
    for _ in range(3):
        assert await tls.context() is before
    (told,) = [one.getMessage() for one in caplog.records if one.name == "aiokafkawire.security"]
    assert "cannot reload changed certificates, keeping the previous ones" in told
    assert "is not valid before" in told

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return begins + dt.timedelta(hours=1)

    monkeypatch.setattr(tls_context, "datetime", Later)
    after = await tls.context()
    assert after is not before
    assert await tls.context() is after

"""Selects the compiled or the pure records of share consumers, whichever kind the ``records`` package uses."""

from typing import TYPE_CHECKING

from ..records.batch import load_beside

if TYPE_CHECKING:
    from ._pure import AcknowledgedRun, ShareRecord, mark_accepted, share_records

__all__ = ("AcknowledgedRun", "ShareRecord", "mark_accepted", "share_records")

if not TYPE_CHECKING:
    _twin = load_beside(__package__)
    AcknowledgedRun = _twin.AcknowledgedRun
    ShareRecord = _twin.ShareRecord
    mark_accepted = _twin.mark_accepted
    share_records = _twin.share_records

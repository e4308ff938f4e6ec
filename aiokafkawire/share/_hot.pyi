from ._pure import AcknowledgedRun, ShareRecord, mark_accepted, share_records

__all__ = ("AcknowledgedRun", "ShareRecord", "mark_accepted", "share_records")

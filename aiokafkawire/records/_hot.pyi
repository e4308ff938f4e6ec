from ._pure import BatchBuilder, ConsumerRecord, Delivery, RecordReader, record_size_bound

__all__ = ("BatchBuilder", "ConsumerRecord", "Delivery", "RecordReader", "record_size_bound")

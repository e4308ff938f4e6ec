"""One pipelined connection per broker and lane."""

"""The verb ``transactions``: the rows that it prints."""

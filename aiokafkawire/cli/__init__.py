"""The ``aiokafkawire`` command."""

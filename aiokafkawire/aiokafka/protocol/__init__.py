"""Two of aiokafka's requests; all messages are in :mod:`aiokafkawire.protocol.messages`."""

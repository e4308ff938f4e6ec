"""aiokafka's API by aiokafka, and by ``aiokafkawire.aiokafka``: one program, run on each of them."""

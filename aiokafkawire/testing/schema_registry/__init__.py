"""A schema registry in memory, over HTTP: subjects, versions, compatibility, and Confluent's REST API."""

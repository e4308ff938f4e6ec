"""Connections to brokers: transports, pipelined requests, TLS, SASL and proxies."""

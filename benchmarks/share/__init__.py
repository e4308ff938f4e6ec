"""Share consumers (KIP-932) that read a filled topic, a program for each client."""

"""Share groups in the client (KIP-932): records that members acquire, process and acknowledge one by one."""

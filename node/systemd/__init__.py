"""systemd: the protocol of sd_notify, and the unit files that run nodes and gateways.

`notify` sends assignments to the service manager, `units` creates the text of units, and `installing` writes them to
files. The services decide what is sent: `supervisor.systemd_status` for a node, `gateway.systemd_notices` for a
gateway. Without systemd, nothing is sent. This package must not import a service.
"""

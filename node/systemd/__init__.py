"""systemd: the protocol of sd_notify, and the unit files that run nodes and gateways.

`notify` sends assignments to the service manager, `units` writes the text of units, `installing` puts them into their
place. What is sent is decided by the services: `supervisor.systemd_status` for a node, `gateway.systemd_notices` for a
gateway. Without systemd nothing is sent, and nothing else changes. This package must not import a service.
"""

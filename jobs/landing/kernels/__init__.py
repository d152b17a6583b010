"""Compiled code of landing: order samples and write remote-write requests from columns."""

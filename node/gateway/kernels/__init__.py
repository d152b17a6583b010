"""Compiled code: where in a request the series lie that are not taken, so that an answer can name one of them."""

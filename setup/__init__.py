"""From an empty Debian machine to a working checkout.

In: the pins in `conf/` (Debian packages, Python packages, Maven poms) and the Java sources in `index/pylucene/`. Out:
a virtual environment at `.venv` with everything in it, and a record of where the jars lie (`installation`). What is
slow to make is kept in a cache folder outside the checkout, each entry keyed by a hash of what went into it.

It runs before anything is installed, so apart from `installation`, which the program reads later, nothing else may
import it, and it may import nothing but the standard library.
"""

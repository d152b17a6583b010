"""Set-up: turns an empty Debian machine into a working checkout.

Input: the pins in `conf/` (Debian packages, Python packages, Maven poms) and the Java sources in `index/pylucene/`.
Output: the virtual environment `.venv` with everything in it, and a record of the paths of the JDK and the jars
(`installation`). Results that are slow to build are kept in a cache folder outside the checkout (`cache`), keyed by a
hash of their inputs. `build_context` is what every step gets: the cache, the progress display, the JDK and the
environment variables.

Set-up runs before anything is installed, so it may import only the standard library and modules that do the same. No
other package may import it, except for `installation`, which the program reads at run time.
"""

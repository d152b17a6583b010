"""What holds for every test."""

import os

from hypothesis import settings

# No deadline: the first call of a kernel compiles it, and machines are noisy. In CI the same examples every time, so
# that a red run speaks of the change; elsewhere new ones, so that somebody finds what those miss.
settings.register_profile("strandline", deadline=None, print_blob=True, derandomize=os.environ.get("CI") == "true")
settings.load_profile("strandline")

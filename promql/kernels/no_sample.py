"""How kernels tell "no sample", in matrices that are seen as words: values would all be NaN, and NaN equals nothing."""

import numpy as np

from strandline.promql.values import NO_SAMPLE_BITS as BITS

NO_SAMPLE_BITS = np.uint64(BITS)

"""The bits of "no sample" as numpy's unsigned integer. Kernels compare bits, because NaN is not equal to itself."""

import numpy as np

from strandline.promql.values import NO_SAMPLE_BITS as BITS

NO_SAMPLE_BITS = np.uint64(BITS)

"""Names for the arrays that columns are made of, as types."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
F64s = npt.NDArray[np.float64]
I64s = npt.NDArray[np.int64]
U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]  # Places in other arrays.

"""Arrays by the type of their entries, for the signatures of kernels."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Flags = NDArray[np.bool_]

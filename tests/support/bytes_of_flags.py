"""Flags of NumPy whose true entries have another byte than 1, as views of masks of 0 and 255."""

import numpy as np

TRUE_BYTES = [2, 128, 254, 255]


def with_byte(flags, byte):
    """The same flags, with this byte where they are true."""
    return np.where(flags, np.uint8(byte), np.uint8(0)).view(np.bool_)

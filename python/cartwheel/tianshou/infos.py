"""The infos of a batch, as one dictionary for each row."""

from __future__ import annotations

from typing import Any

import numpy as np


def infos_by_row(infos: dict[str, Any], num_rows: int) -> list[dict[str, Any]]:
    """Takes the infos of a batch apart.

    Args:
        infos: Arrays with their masks, ``_name``, and dictionaries of such arrays; an array without
            a mask has a value for every row.
        num_rows: The rows of the batch.

    Returns:
        One dictionary for each row, with the keys that this row has. ``env_index`` is left out.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    for key, values in infos.items():
        if key == "env_index" or (key.startswith("_") and key[1:] in infos):
            continue
        mask = infos.get(f"_{key}")
        having = range(num_rows) if mask is None else np.flatnonzero(mask).tolist()
        column = infos_by_row(values, num_rows) if isinstance(values, dict) else values
        for row in having:
            rows[row][key] = column[row]
    return rows

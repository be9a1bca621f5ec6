# SPDX-License-Identifier: Apache-2.0
"""Records are plain dicts of numbers and texts, one a row; `None` is what was not measured."""

from __future__ import annotations

import importlib
from typing import Any, Iterable, Mapping

from .errors import MachineError

Cell = str | int | float | bool | None
Record = dict[str, Cell]


def columns(records: Iterable[Mapping[str, Cell]]) -> dict[str, list[Cell]]:
    """The same as columns, for NumPy and plots: {"time_us": [63.8, None, ...], ...}."""
    rows = list(records)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def frame(records: Iterable[Mapping[str, Cell]]) -> Any:
    """The same as a pandas.DataFrame."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise MachineError("pandas is not installed",
                           "pip install pandas, or use the records as they are") from error
    return pandas.DataFrame(columns(records))

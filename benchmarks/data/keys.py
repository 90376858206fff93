"""Tables of join keys for benchmarks of speed: BIGINT and STRING, Zipf and uniform, made once into a cache folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import platformdirs
import pyarrow as pa
import pyarrow.parquet as pq

from skimql.engine.catalog.disk import create

FILE_TUPLES = 1_000_000
DISTINCT = 1 << 20
ZIPF = 0.8

# Column of each key: its type and its distribution.
KEYS = {
    ("bigint", "zipf"): "k",
    ("bigint", "uniform"): "u",
    ("string", "zipf"): "ks",
    ("string", "uniform"): "us",
}


def key_files(side: str, tuples: int, folder: Path | None = None) -> list[str]:
    """Parquet files of one relation, `tuples` in all; file i is the same however many are asked for.

    Parameters
    ----------
    side : str
        Which relation; another name is another draw from the same keys.
    tuples : int
        A multiple of a million.
    folder : Path, optional
        Where they are kept; the user's cache folder by default.

    Notes
    -----
    Columns `k` (BIGINT, Zipf 0.8 over 2^20 keys), `u` (BIGINT, uniform), `ks` and `us` (the same as STRING) and `v`
    (INT, up to 1,000). Keys are in no order, and of 64 bits.
    """
    if tuples % FILE_TUPLES:
        raise ValueError(f"tables come in whole files of {FILE_TUPLES:,} tuples, not {tuples:,}")
    kept = (folder or Path(platformdirs.user_cache_dir("skimql")) / "keys") / side
    kept.mkdir(parents=True, exist_ok=True)
    files = [kept / f"part-{number:04}.parquet" for number in range(tuples // FILE_TUPLES)]
    missing = [(number, file) for number, file in enumerate(files) if not file.exists()]
    if missing:
        law = np.arange(1, DISTINCT + 1, dtype=np.float64) ** -ZIPF
        law = np.cumsum(law / law.sum())
        identities = np.random.default_rng(7).integers(1, 1 << 62, DISTINCT)
        texts = pa.array([f"customer-{number:019}" for number in identities.tolist()])
        for number, file in missing:
            _write(file, _table(law, identities, texts, np.random.default_rng([*side.encode(), number])))
    return [str(file) for file in files]


def _table(law: np.ndarray, identities: np.ndarray, texts: pa.Array, rng: np.random.Generator) -> pa.Table:
    zipf = np.minimum(np.searchsorted(law, rng.random(FILE_TUPLES)), DISTINCT - 1)
    uniform = rng.integers(0, DISTINCT, FILE_TUPLES)
    return pa.table(
        {
            "k": identities[zipf],
            "u": identities[uniform],
            "ks": texts.take(pa.array(zipf)),
            "us": texts.take(pa.array(uniform)),
            "v": rng.integers(0, 1001, FILE_TUPLES).astype(np.int32),
        }
    )


def _write(file: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    create(file, sink.getvalue().to_pybytes())

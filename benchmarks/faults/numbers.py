"""Numbers, units, names and paths in every place where one may stand; no Spark.

Each is taken, or refused by an error of ours, within seconds; what is taken is a finite number within bounds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
from pathlib import Path

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.settings import Settings
from skimql.engine.sources.tables import Tables

from .reading import read
from .record import Tally

TRIES = 5_000

DIGITS = ["0", "1", "4", "5", "64", "1001", "4096", "4,096", "4_096", "99999999999999999999", "9" * 40, "9" * 5_000, "1" + "0" * 400,
          "0" * 400 + "1", "1" * 100_000, "0.05", ".5", "5.", "0." + "0" * 400 + "1", "1e3", "1e-3", "9e999", "1e-999", "1e5000", "1.5.2",
          "0x10", "1__2", "1,,2", "٣", "²", "½", "inf", "nan", "Infinity", "-1", "- 1", "+1", "-0", "--1", "1-", "", " ", "None", "none",
          "true", "1 2", "9223372036854775807", "9223372036854775808", "2147483648", "67108864", "67108865"]  # fmt: skip
UNITS = [
    "",
    "%",
    " %",
    "k",
    "K",
    "kb",
    " KB",
    "KiB",
    "MB",
    "GB",
    "TB",
    "T",
    "PB",
    "EB",
    "B",
    "bytes",
    "%%",
    "s",
    "L",
    "e",
    "KBB",
    "\x00",
]
NAMES = ["a", "`a`", "``", "`a``b`", "a.b", "a b", "1a", "é", "🙂", "a" * 10_000, "`" + "a" * 100_000 + "`", "`\x00`", "`\x1b[31m`", "select",
         "`select`", "'a'", '"a"', "..", "`../x`", "`/etc/passwd`", "$a", "a$", "\u202e", "`\n`", "*", "?", ":p", "`w.0`", "con", "NULL"]  # fmt: skip
PATHS = ["x", "", " ", "/", "..", "a" * 10_000, "/nosuch/" + "b/" * 3_000, "\x00", "a\x00b.parquet", "a\nb.parquet", "~nosuch/x.csv", "s3://", "://x",
         "file:", "file:///nosuch.parquet", "file:/nosuch.parquet", "a[1].parquet", "a{b}.parquet", "a:b.parquet", "a*b.parquet", "/dev/null",
         "/dev/zero", "x.orc", "x.avro", "x.delta", "x.parquet.gz", "\ud800.csv", "🙂.parquet", "con.csv", "%00.parquet", "http://[x].csv"]  # fmt: skip
PLACES = [
    *(f"SELECT APPROX COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum {clause}" for clause in (
        "SIZE {}", "SEED {}", "ERROR WITHIN {}", "ERROR WITHIN 5% CONFIDENCE {}", "WITH ERROR {}", "LIMIT {}", "OFFSET {}", "ORDER BY {}",
        "GROUP BY {}", "WHERE f.month = {}", "WHERE f.month IN (1, {})", "WHERE f.month > {} AND f.month < {}", "HAVING COUNT(*) > {}",
        "OPTIONS (rows = {})", "OPTIONS (buckets = {})", "OPTIONS (max_bytes = {})", "OPTIONS (seed = {})", "OPTIONS (error = {})",
        "OPTIONS (buckets = '{}')", "OPTIONS (confidence = '{}', fold_bytes = {})", "OPTIONS (max_groups = {})")),
    "SELECT APPROX COUNT(*) * {}, SUM(seats + {}) FROM planes",
    "SELECT APPROX ROUND(SUM(seats), {}), COALESCE(SUM(seats), {}) FROM planes",
    "CREATE SKETCH s ON flights (tailnum) SIZE {}",
    "CREATE SKETCH s ON flights (tailnum) OPTIONS (rows = {}, buckets = {})",
    "CREATE SKETCH s ON flights (tailnum) ERROR WITHIN {} CONFIDENCE {}",
    "CREATE SKETCHES w FOR QUERIES (SELECT 1) SIZE {} MINIMIZE MAX ERROR PARTITION INTO {}",
    *(f"SET skimql.{name} = {{}}" for name in (f.name for f in dataclasses.fields(Settings))),
]  # fmt: skip
NAMED = [
    "SELECT APPROX COUNT(*) FROM {}", "SELECT APPROX COUNT({}) FROM planes", "SELECT APPROX COUNT(*) AS {} FROM planes p",
    "SELECT APPROX COUNT(*) FROM planes {}", "SELECT APPROX COUNT(*) FROM planes p JOIN flights {} ON p.tailnum = {}.tailnum",
    "SELECT APPROX COUNT(*) FROM flights JOIN planes USING ({})", "CREATE SKETCH {} ON flights (tailnum CLASS {})",
    "CREATE SKETCH s ON {} ({})", "DROP SKETCH {}", "DESCRIBE SKETCH {}", "SELECT APPROX COUNT(*) FROM flights USING {}",
    "SELECT APPROX COUNT(*) FROM flights OPTIONS ({} = 1)", "SET skimql.{} = 1", "EXPORT SKETCH s TO '{}'", "APPEND SKETCH s FROM '{}'",
    "EXPLAIN FORMAT {} SELECT APPROX COUNT(*) FROM planes", "SELECT APPROX COUNT(*) FROM planes BEHAVIOR '{}'",
]  # fmt: skip


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Read `tries` numbers, names and paths, each in a place of its own."""
    tally, chosen = Tally("numbers"), random.Random(seed)
    for _ in range(tries):
        match chosen.randrange(6):
            case 0:
                name = chosen.choice([f.name for f in dataclasses.fields(Settings)])
                _set(tally, name, chosen.choice(DIGITS) + chosen.choice(UNITS))
            case 1:
                _register(tally, folder, chosen.choice(NAMES), chosen.choice(PATHS))
            case 2:
                _read(tally, chosen.choice(NAMED), lambda: chosen.choice([*NAMES, *PATHS]))
            case _:
                _read(tally, chosen.choice(PLACES), lambda: chosen.choice(DIGITS) + chosen.choice(UNITS))
    return tally


def _read(tally: Tally, place: str, value: object) -> None:
    pieces = place.split("{}")
    text = pieces[0] + "".join(value() + piece for piece in pieces[1:])  # type: ignore[operator]
    with tally.trying(_shown(text)):
        read(text)


def _set(tally: Tally, name: str, text: str) -> None:
    with tally.trying(_shown(f"-s {name}={text}")):
        value = getattr(Settings().with_text({name: text}), name)
        if isinstance(value, float) and not math.isfinite(value):
            tally.wrong.append(_shown(f"-s {name}={text}"))


def _register(tally: Tally, folder: Path, name: str, path: str) -> None:
    """Everything about a table that is decided before Spark is asked."""
    with tally.trying(_shown(f"table({name}, {path})")):
        tables = Tables(_no_spark, Catalog(folder / "catalog"))
        with contextlib.suppress(_NoSpark):
            tables.register(name, path, {})


class _NoSpark(Exception):
    pass


def _no_spark() -> object:
    raise _NoSpark


def _shown(text: str) -> str:
    return repr(text if len(text) <= 300 else f"{text[:150]}...({len(text):,} characters)...{text[-100:]}")

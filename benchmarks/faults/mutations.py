"""Valid statements of all kinds with pieces dropped, doubled, swapped and put in: read, resolved, planned; no Spark.

Whatever the text, there is a statement or an error of ours, within seconds, whose place lies in the text.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from skimql.errors import SkimqlError

from .reading import read
from .record import Tally

TRIES = 20_000

CORPUS = [
    "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.l_price * (1 - l.l_discount)) AS revenue, AVG(o.o_totalprice) FROM lineitem l "
    "JOIN orders o ON l.l_orderkey = o.o_orderkey JOIN customer c ON o.o_custkey = c.c_custkey "
    "WHERE o.o_orderdate >= DATE '2025-01-01' AND c.c_name LIKE 'A%' ERROR WITHIN 5% AT CONFIDENCE 95% BEHAVIOR 'strict'",
    "SELECT APPROX c.c_nation, COUNT(*) c, ROUND(AVG(o.o_totalprice), 2) r FROM orders o JOIN customer c "
    "ON o.o_custkey = c.c_custkey GROUP BY c.c_nation HAVING c > 10 AND AVG(o.o_totalprice) BETWEEN 1 AND 2 "
    "ORDER BY 2 DESC NULLS LAST, c_nation LIMIT 5 OFFSET 2",
    "WITH q AS (SELECT o_orderkey k, o_custkey + 1 AS c FROM orders WHERE o_orderdate >= DATE '2024-01-02'), r(a) AS "
    "(SELECT k FROM q) SELECT APPROX COUNT(DISTINCT a), lower_bound(n), COUNT(*) n FROM r LEFT JOIN lineitem l ON "
    "a = l.l_orderkey WHERE l.l_price > 0",
    "SELECT APPROX COUNT(DISTINCT k) FROM (SELECT o_orderkey k FROM orders INTERSECT SELECT l_orderkey FROM lineitem EXCEPT "
    "SELECT o_orderkey FROM dear)",
    "SELECT APPROX COUNT(*) FROM flights NATURAL JOIN planes WHERE tag.a::int = 1 OR seats <=> NULL",
    "SELECT APPROX SUM(CASE WHEN f.month > 6 THEN p.seats * f.distance ELSE 0 END) / COUNT(*) FROM flights f, planes p "
    "WHERE f.tailnum = p.tailnum AND f.dest IN (SELECT dest FROM flights WHERE month = 1) USING agms OPTIONS (rows = 7, "
    "buckets = 4k, sparse = false) SEED 7",
    "SELECT APPROX SUM((f.distance + p.seats) * (f.month - p.year)), COUNT_IF(f.month = 1), MEAN(p.seats) FILTER (WHERE "
    "f.month > 2) FROM flights f JOIN planes p USING (tailnum) SIZE 64 KB",
    "SELECT APPROX SUM(CASE f.dest WHEN 'JFK' THEN p.seats END), COALESCE(SUM(f.distance), 0), APPROX_COUNT_DISTINCT("
    "f.dest) FROM flights f JOIN planes p ON f.tailnum = p.tailnum",
    "SELECT COUNT(*) FROM orders o JOIN dear d ON o.o_orderkey = d.o_orderkey WITH ERROR 0.05 CONFIDENCE 0.95",
    "ESTIMATE ROWS FOR SELECT * FROM (flights a JOIN planes b ON a.tailnum = b.tailnum) JOIN planes `c d` ON `c d`.tailnum "
    "= a.tailnum",
    "EXACT SELECT COUNT(*) FROM orders WHERE o_orderkey = 1 ERROR WITHIN 5%",
    "EXPLAIN FORMAT JSON SELECT APPROX COUNT(*) FROM orders -- why\n WHERE o_custkey = 1 /* not /* nested */ */",
    "CREATE OR REPLACE SKETCH s ON orders (o_custkey CLASS c, o_orderkey + 1) FOR SUM(o_totalprice) WHERE o_orderdate > "
    "DATE '2024-01-01' USING convolution SIZE 64 KB OPTIONS (rows = 3)",
    "CREATE SKETCH IF NOT EXISTS s ON flights (tailnum) ERROR WITHIN 5% CONFIDENCE 95%",
    "CREATE SKETCHES w FOR QUERIES (SELECT COUNT(*) FROM orders o JOIN lineitem l ON o.o_orderkey = l.l_orderkey; SELECT "
    "SUM(o_totalprice) FROM orders JOIN customer ON o_custkey = c_custkey) SIZE 1 MB MINIMIZE AVERAGE ERROR PARTITION INTO 4",
    "APPEND SKETCH s FROM orders WHERE o_orderdate = DATE '2026-11-27'; REFRESH SKETCH s; DROP SKETCH IF EXISTS s",
    "SHOW SKETCHES LIKE 'a*'; DESCRIBE SKETCH EXTENDED s; EXPORT SKETCH s TO 'a/b'; IMPORT SKETCH s FROM 'a/b'",
    "SET skimql.confidence = 99%; SET skimql.max_bytes = 64 MB; SET skimql.error = none",
    "CREATE STREAM s (k BIGINT, op STRING, a ARRAY<STRUCT<b: INT>>) FROM JSON 'p' OPTIONS (x = 'y') DELETES WHEN op = 'd'",
    "CREATE CONTINUOUS VIEW q WITH (window = '1 hour') AS SELECT APPROXIMATE COUNT(*) FROM flights; SHOW QUERIES EXTENDED",
    "SELECT APPROXIMATE COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.o_custkey = c.c_custkey AND "
    "o.o_totalprice > 5)",
]
ODD = [
    *"()[]{}<>'\"`;,.*-+/%=!?:@#$\\|&^~",
    "/*", "*/", "--", "\x00", "\x1b", "é", "\u3000", "\u200b", "٣", "²", "🙂", "\ud800", "r'", "''", "``", "<=>", "||", "::", "=>",
    "NULL", "TRUE", "DISTINCT", "ALL", "INTERVAL", "CASE", "END", "LATERAL", "OVER ()", "PIVOT", "VALUES (1)", "1e999",
    "9" * 50, "0x1F", "1L", "1BD", "-0", "nan", "inf", "(SELECT 1)", "UNION ALL", "EXCEPT", "FROM", "SELECT", "JOIN", "ON",
]  # fmt: skip
_TOKEN = re.compile(r"'[^']*'|`[^`]*`|\w+|\s+|[^\w\s]")


def mutated(chosen: random.Random) -> str:
    """A valid statement with one to six changes."""
    parts = _TOKEN.findall(chosen.choice(CORPUS))
    for _ in range(chosen.randint(1, 6)):
        if not parts:
            break
        at, other = chosen.randrange(len(parts)), chosen.randrange(len(parts))
        match chosen.randrange(9):
            case 0:
                del parts[at : at + chosen.randint(1, 4)]
            case 1:
                parts[at], parts[other] = parts[other], parts[at]
            case 2:
                parts[at:at] = parts[other : other + chosen.randint(1, 12)]
            case 3:
                donor = _TOKEN.findall(chosen.choice(CORPUS))
                start = chosen.randrange(len(donor))
                parts[at:at] = [" ", *donor[start : start + chosen.randint(1, 10)], " "]
            case 4:
                parts[at] = chosen.choice(ODD)
            case 5:
                parts.insert(at, chosen.choice(ODD))
            case 6:
                text = parts[at]
                cut = chosen.randrange(len(text) + 1)
                parts[at] = text[:cut] + chosen.choice(ODD) + text[cut:]
            case 7:
                del parts[at:]
            case 8:
                parts[at] = parts[at] * chosen.randint(2, 200)
    return "".join(parts)


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Read `tries` mutations."""
    tally, chosen = Tally("mutations"), random.Random(seed)
    for _ in range(tries):
        text = mutated(chosen)
        with tally.trying(repr(text)):
            try:
                read(text)
            except SkimqlError as error:
                _check(error)
                raise
    return tally


def _check(error: SkimqlError) -> None:
    shown = str(error)
    if error.span is not None and not 0 <= error.span[0] <= error.span[1] <= len(error.sql) + 1:
        raise AssertionError(f"a place outside of the text: {error.span}")
    if "Traceback" in shown or "<class" in shown or "<Token" in shown:
        raise AssertionError(f"words of a library's: {shown}")

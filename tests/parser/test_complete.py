"""Whether Enter runs what is typed."""

from __future__ import annotations

import pytest

from skimql import is_complete

COMPLETE = """
SELECT 1
SELECT 1;
SELECT 1 -- comment
SELECT 1 AS a, 'x' b
SELECT current_date()
SELECT CASE WHEN 1 THEN 2 END
SHOW SKETCHES
SHOW TABLES
SET
SET skimql.error = 5%
USE db
DESCRIBE t
DROP SKETCH s
FROM t
SELECT APPROXIMATE COUNT(*) FROM t
SELECT APPROXIMATE COUNT(*) FROM f JOIN p ON f.tailnum = p.tailnum
SELECT APPROXIMATE COUNT(*) FROM f JOIN p USING (tailnum)
SELECT APPROXIMATE COUNT(*) FROM f JOIN p ON f.tailnum = p.tailnum ERROR WITHIN 5%
SELECT * FROM a NATURAL JOIN b
SELECT * FROM a CROSS JOIN b
SELECT a FROM t ORDER BY size
SELECT COUNT(*) FROM t GROUP BY a ORDER BY b DESC
SELECT COUNT(*) FROM t WHERE a = b )
SELECT COUNT(*) FRM t;
CREATE SKETCH s ON orders (custkey)
CREATE SKETCH s ON orders (custkey) SIZE 64 KB
CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT 2;) SIZE 1 MB MINIMIZE AVERAGE ERROR
EXPLAIN SELECT APPROXIMATE COUNT(*) FROM t
ESTIMATE ROWS FOR SELECT * FROM a JOIN b ON a.k = b.k
WITH q AS (SELECT 1 AS a) SELECT a FROM q
\\d flights
-- nothing but words
"""

OPEN = """
SELECT
SELECT *
SELECT a,
SELECT a, b
SELECT count(*)
SELECT 'a;
SELECT `a
SELECT /* open
SELECT APPROXIMATE COUNT(*)
SELECT APPROXIMATE COUNT(*) FROM
SELECT APPROXIMATE COUNT(*) FROM f JOIN p
SELECT APPROXIMATE COUNT(*) FROM f JOIN p ON
SELECT APPROXIMATE COUNT(*) FROM f JOIN p ON f.k =
SELECT APPROXIMATE COUNT(*) FROM f JOIN p ON f.k = p.
SELECT APPROXIMATE COUNT(*) FROM f ERROR WITHIN
SELECT a FROM t WHERE
SELECT a FROM t WHERE x BETWEEN 1 AND
SELECT a FROM t GROUP BY
SELECT a FROM t LEFT JOIN b
CREATE SKETCH s
CREATE SKETCH s ON orders
CREATE SKETCH s ON orders (custkey
CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT 2;
WITH q AS (SELECT 1 AS a)
DROP
EXPLAIN
ESTIMATE ROWS FOR
EXPORT SKETCH s TO
SET skimql.error =
"""


@pytest.mark.parametrize("text", COMPLETE.strip().splitlines())
def test_what_may_end_is_complete(text):
    assert is_complete(text)


@pytest.mark.parametrize("text", OPEN.strip().splitlines())
def test_what_must_go_on_is_not(text):
    assert not is_complete(text)


def test_an_empty_text_is_complete():
    assert is_complete("")
    assert is_complete(" \n ")

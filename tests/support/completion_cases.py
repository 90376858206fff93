"""Statements of the dialect that are cut at each word, and names for them."""

from __future__ import annotations

from skimql.cli.shell.names import Names, Table

NAMES = Names(
    (
        Table("flights", tuple((c, k) for c, k in [("year", "int"), ("month", "int"), ("dep_delay", "double"), ("carrier", "string"), ("tailnum", "string"), ("origin", "string"), ("dest", "string"), ("distance", "double"), ("time_hour", "timestamp")]), frozenset({"tailnum"})),
        Table("planes", (("tailnum", "string"), ("year", "int"), ("seats", "int"))),
        Table("weather", (("origin", "string"), ("time_hour", "timestamp"), ("precip", "double"))),
        Table("orders", (("orderkey", "bigint"), ("custkey", "bigint"), ("total", "decimal(12,2)"), ("status", "string"), ("orderdate", "date"))),
        Table("lineitem", (("orderkey", "bigint"), ("price", "double"), ("discount", "double"))),
        Table("customer", (("custkey", "bigint"), ("segment", "string"))),
        Table("order items", (("order id", "int"), ("unit.price", "double"))),
        Table("l_orders", (("o_orderkey", "bigint"), ("o_custkey", "bigint"))),
        Table("l_lines", (("l_orderkey", "bigint"), ("l_price", "double"))),
    ),
    ("s", "w"),
    {"late": "SELECT 1"},
    streams=(
        Table("flows", (("src", "bigint"), ("bytes", "bigint"), ("op", "string"), ("ts", "timestamp"))),
        Table("alerts", (("src", "bigint"),)),
    ),
    views=("traffic", "pairs"),
)  # fmt: skip

# Every statement that works of the dialect, on these tables.
STATEMENTS = """
SELECT APPROXIMATE COUNT(*) AS n , SUM(price) AS revenue FROM lineitem l JOIN orders o ON l.orderkey = o.orderkey JOIN customer c USING (custkey) WHERE total > 5 GROUP BY segment HAVING n > 100 ORDER BY n DESC LIMIT 10 ERROR WITHIN 5% AT CONFIDENCE 95%
SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum WHERE distance > 500 AND seats < 100
SELECT COUNT(*) FROM orders WITH ERROR 5% CONFIDENCE 95% BEHAVIOR 'strict'
SELECT APPROXIMATE COUNT(*) FROM orders USING agms OPTIONS (rows = 11 ) SEED 1
SELECT APPROXIMATE COUNT(*) FROM orders SIZE 64 KB
EXACT SELECT COUNT(*) FROM flights WHERE year = 2013
ESTIMATE ROWS FOR SELECT * FROM orders o JOIN lineitem l ON o.orderkey = l.orderkey
SELECT APPROXIMATE COUNT(DISTINCT custkey) FROM orders WHERE status = 'F'
CREATE SKETCH s ON orders (custkey, orderkey) FOR SUM (total) WHERE status = 'F' USING hash SIZE 64 KB
CREATE OR REPLACE SKETCH s ON orders (custkey) ERROR WITHIN 5% CONFIDENCE 95%
CREATE SKETCH IF NOT EXISTS s ON orders (custkey) OPTIONS (rows = 11 )
CREATE SKETCHES w FOR QUERIES (SELECT COUNT(*) FROM orders; SELECT COUNT(*) FROM customer) SIZE 16 MB MINIMIZE AVERAGE ERROR PARTITION INTO 10
CREATE SKETCHES w FOR QUERIES (SELECT COUNT(*) FROM orders) SIZE 16 MB MINIMIZE MAX ERROR
APPEND SKETCH s FROM orders WHERE status = 'F' DELETES WHEN status = 'd'
APPEND SKETCH s FROM orders WEIGHT total
APPEND SKETCH s FROM SKETCH w
REFRESH SKETCH s
SHOW SKETCHES
SHOW SKETCHES LIKE 's*'
DESCRIBE SKETCH s
DESCRIBE SKETCH EXTENDED s
DROP SKETCH s
DROP SKETCH IF EXISTS s
EXPORT SKETCH s TO 'path'
IMPORT SKETCH s FROM 'path' TRUSTED
EXPLAIN SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN ANALYZE SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN FORMAT JSON SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN SKETCHES w
SET skimql.error = 5%
SET skimql.error = none
SET skimql.confidence = 95%
SET skimql.behavior = 'strict'
SET skimql.seed = 1
SET skimql.cache = true
SELECT * FROM flights WHERE dest IN (SELECT origin FROM weather WHERE precip > 1)
CREATE STREAM x (k BIGINT) FROM JSON 'path' OPTIONS () DELETES WHEN k = 'd'
CREATE OR REPLACE STREAM x (k BIGINT) FROM KAFKA 'topic' CHANGES DEBEZIUM
CREATE STREAM IF NOT EXISTS x (k BIGINT) FROM PARQUET 'path' WEIGHT k DEDUP ()
CREATE CONTINUOUS VIEW x AS SELECT APPROXIMATE COUNT(*) FROM flows f JOIN alerts a ON f.src = a.src
CREATE OR REPLACE CONTINUOUS VIEW x WITH () AS SELECT APPROXIMATE COUNT(*) FROM flows WHERE op = 'i'
CREATE CONTINUOUS VIEWS x (v AS (SELECT COUNT(*) FROM flows)) SIZE 1 MB MINIMIZE AVERAGE ERROR
SHOW STREAMS
SHOW QUERIES EXTENDED
DESCRIBE STREAM flows
DROP STREAM IF EXISTS flows
SELECT * FROM traffic
REFRESH traffic
PAUSE traffic
RESUME traffic
TERMINATE traffic
WITH q AS (SELECT custkey FROM orders) SELECT APPROXIMATE COUNT(*) FROM q JOIN customer c ON q.custkey = c.custkey
SELECT APPROXIMATE COUNT(*) FROM (SELECT orderkey FROM lineitem) q JOIN orders o ON q.orderkey = o.orderkey
DROP TABLE IF EXISTS orders
CREATE TEMPORARY VIEW v AS SELECT custkey FROM orders
DESCRIBE orders
SHOW TABLES
""".strip().splitlines()

# Others, with more of Spark's own statements in them.
MORE_STATEMENTS = """
SELECT APPROXIMATE c.segment, COUNT(*) AS n, SUM(l.price * (1 - l.discount)) AS revenue FROM lineitem l JOIN orders o ON l.orderkey = o.orderkey JOIN customer c USING (custkey) WHERE o.orderdate >= DATE '2025-01-01' GROUP BY c.segment HAVING n > 100 ORDER BY n DESC LIMIT 10 ERROR WITHIN 5% AT CONFIDENCE 95%
SELECT COUNT(*) FROM orders WITH ERROR 5% CONFIDENCE 95% BEHAVIOR 'strict'
SELECT APPROXIMATE COUNT(*) FROM orders o JOIN lineitem l ON o.orderkey = l.orderkey USING two_level OPTIONS (rows = 7, buckets = 4096) SEED 7
SELECT APPROXIMATE COUNT(*) FROM orders o JOIN customer c USING (custkey) USING sampled_query
ESTIMATE ROWS FOR SELECT * FROM flights a JOIN planes b ON a.tailnum = b.tailnum
SELECT APPROXIMATE COUNT(DISTINCT custkey) FROM (SELECT custkey FROM orders INTERSECT SELECT custkey FROM customer)
CREATE SKETCH x ON orders (custkey CLASS c, orderkey) FOR SUM(total) WHERE status = 'F' GROUP BY status USING key_sample SIZE 64 KB
CREATE SKETCH x ON orders (custkey) USING agms ERROR WITHIN 5% CONFIDENCE 95% OPTIONS (sparse = false)
CREATE SKETCHES x FOR QUERIES (SELECT COUNT(*) FROM orders o JOIN customer c ON o.custkey = c.custkey; SELECT SUM(total) FROM orders) SIZE 16 MB MINIMIZE AVERAGE ERROR PARTITION INTO 4
CREATE SKETCHES x FOR QUERIES ((SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM customer)) SIZE 1 MB MINIMIZE MAX ERROR
APPEND SKETCH s FROM orders WHERE orderdate = '2026-11-27' DELETES WHEN status = 'd'
APPEND SKETCH s FROM 'new.parquet' WEIGHT total
APPEND SKETCH s FROM SKETCH w
REFRESH SKETCH s
REFRESH SKETCHES w
DESCRIBE SKETCHES w
DROP SKETCHES IF EXISTS w
EXPORT SKETCH s TO 'path'
IMPORT SKETCH x FROM 'path' TRUSTED
CREATE STREAM x (src BIGINT, dst BIGINT, op STRING) FROM JSON 'path' OPTIONS () DELETES WHEN op = 'd' DEDUP (src) WITHIN '1 hour'
CREATE STREAM x (src BIGINT) FROM RATE 'path' WEIGHT src
CREATE STREAM x (src BIGINT) FROM KAFKA 'topic' CHANGES DELTA
CREATE CONTINUOUS VIEW q WITH (window = '1 hour', slide = '5 minutes', watermark = '10 minutes', time = ts) AS SELECT APPROXIMATE COUNT(*) FROM flows f JOIN alerts a ON f.src = a.src
CREATE OR REPLACE CONTINUOUS VIEWS x (v AS (SELECT COUNT(*) FROM flows f JOIN alerts a ON f.src = a.src)) SIZE 1 MB MINIMIZE MAX ERROR PARTITION INTO 4
SHOW QUERIES EXTENDED
SHOW STREAMS
SHOW SKETCHES LIKE 's*'
TERMINATE traffic
EXPLAIN ANALYZE FORMAT JSON SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN FORMAT SVG SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN FORMAT MERMAID SELECT APPROXIMATE COUNT(*) FROM orders
EXPLAIN EXTENDED SELECT * FROM orders
EXPLAIN FORMATTED SELECT * FROM orders
SET skimql.error = 5%
SET skimql.simultaneous = true
SET skimql.max_bytes = '64 MB'
SET skimql.bounds = none
WITH big AS (SELECT custkey, total FROM orders WHERE total > 100) SELECT APPROXIMATE COUNT(*) FROM big b JOIN customer c ON b.custkey = c.custkey WHERE c.segment = 'x'
WITH a AS (SELECT tailnum FROM flights), b AS (SELECT tailnum FROM planes) SELECT COUNT(*) FROM a JOIN b ON a.tailnum = b.tailnum
SELECT q.origin, COUNT(*) FROM (SELECT origin, dest FROM flights WHERE distance > 100) q JOIN weather w ON q.origin = w.origin GROUP BY q.origin
SELECT APPROXIMATE COUNT(*) FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour WHERE f.carrier IN ('UA', 'AA') AND w.precip IS NOT NULL
SELECT carrier, COUNT(*) AS n FROM flights WHERE dep_delay BETWEEN 1 AND 2 GROUP BY carrier ORDER BY carrier
SELECT * FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE p.tailnum IS NULL
SELECT * FROM flights f LEFT ANTI JOIN planes p ON f.tailnum = p.tailnum
SELECT * FROM flights WHERE EXISTS (SELECT * FROM planes p WHERE p.tailnum = flights.tailnum)
SELECT * FROM flights WHERE tailnum IN (SELECT tailnum FROM planes WHERE seats > 100)
SELECT `order id`, `unit.price` FROM `order items` WHERE `order id` > 5
SELECT DISTINCT carrier FROM flights ORDER BY carrier LIMIT 10
SELECT CASE WHEN distance > 500 THEN 'x' ELSE 'y' END AS k FROM flights
SELECT origin FROM flights UNION ALL SELECT dest FROM flights
SELECT origin FROM flights EXCEPT SELECT origin FROM weather
INSERT INTO orders SELECT * FROM orders WHERE total > 5
INSERT INTO orders VALUES (1, 2)
INSERT OVERWRITE TABLE orders SELECT * FROM orders
CREATE TABLE x (id INT, n STRING) USING PARQUET
CREATE TABLE IF NOT EXISTS x USING PARQUET AS SELECT * FROM orders
CREATE OR REPLACE TEMPORARY VIEW x AS SELECT custkey FROM orders WHERE total > 5
CREATE OR REPLACE TEMP VIEW x AS SELECT custkey FROM orders
CREATE VIEW x AS SELECT custkey FROM orders
CREATE TEMPORARY VIEW x USING CSV OPTIONS (path 'x')
CREATE DATABASE IF NOT EXISTS x
DROP VIEW IF EXISTS orders
DROP TABLE orders
ALTER TABLE orders RENAME TO x
ALTER TABLE orders ADD COLUMNS (z INT)
ALTER TABLE orders DROP COLUMN total
TRUNCATE TABLE orders
CACHE TABLE orders
UNCACHE TABLE orders
REFRESH TABLE orders
ANALYZE TABLE orders COMPUTE STATISTICS FOR COLUMNS custkey
ANALYZE TABLE orders COMPUTE STATISTICS
SHOW TABLES LIKE 'o*'
SHOW COLUMNS FROM orders
SHOW CREATE TABLE orders
SHOW PARTITIONS orders
SHOW FUNCTIONS
SHOW DATABASES
DESCRIBE EXTENDED orders
DESC orders
DESCRIBE FUNCTION upper
DELETE FROM orders WHERE total > 5
UPDATE orders SET total = 5 WHERE status = 'x'
MERGE INTO orders USING lineitem ON orders.orderkey = lineitem.orderkey WHEN MATCHED THEN DELETE
USE DATABASE x
SELECT APPROXIMATE year, month, COUNT(*) FROM flights GROUP BY year, month ORDER BY year, month
SELECT COUNT(*) FILTER (WHERE distance > 5) FROM flights
SELECT carrier, SUM(distance) OVER (PARTITION BY carrier ORDER BY year) FROM flights
SELECT APPROXIMATE SUM(f.distance) FROM flights f, planes p WHERE f.tailnum = p.tailnum AND p.seats < 100 ERROR WITHIN 1%
SELECT APPROXIMATE AVG(distance) FROM flights WHERE origin LIKE 'J%' OR dest = 'x'
SELECT lower_bound(n), upper_bound(n), COUNT(*) AS n FROM orders WITH ERROR 5%
""".strip().splitlines()

# A bar is the cursor; what must be among the first candidates.
CASES = """
| -> SELECT, SHOW SKETCHES
sel| -> SELECT
SELECT | -> APPROXIMATE, count(*)
SELECT APPR| -> APPROXIMATE
SELECT | FROM flights f -> APPROXIMATE
SELECT tn| FROM flights -> tailnum
SELECT dd| FROM flights -> dep_delay
SELECT f.| FROM flights f -> year
SELECT f.ta| FROM flights f -> tailnum
SELECT f.tn| FROM flights f -> tailnum
SELECT flights.dist| FROM flights -> distance
SELECT sum(dis| FROM flights -> distance
SELECT COUNT(| FROM flights -> *, DISTINCT
SELECT * FROM | -> flights
SELECT * FROM fl| -> flights
SELECT * FROM ligh| -> flights
SELECT * FROM fgt| -> flights
SELECT * FROM FLI| -> flights
SELECT * FROM ord| -> orders, `order items`
SELECT * FROM `order| -> `order items`
SELECT * FROM flights f JOIN | -> flights, planes
SELECT * FROM flights f JOIN pl| -> planes
SELECT * FROM flights f | -> JOIN, WHERE
SELECT * FROM flights f JOIN planes p | -> ON
SELECT * FROM flights f JOIN planes p ON | -> f.tailnum = p.tailnum
SELECT * FROM flights JOIN weather ON | -> flights.origin = weather.origin
SELECT * FROM lineitem l JOIN orders o ON | -> l.orderkey = o.orderkey
SELECT * FROM orders JOIN customer ON | -> orders.custkey = customer.custkey
SELECT * FROM l_orders JOIN l_lines ON | -> l_orders.o_orderkey = l_lines.l_orderkey
SELECT * FROM flights f JOIN planes p ON f.tailnum = | -> p.tailnum
SELECT * FROM flights f JOIN planes p ON f.tailnum = p.| -> tailnum
SELECT * FROM flights f JOIN planes p ON f.tailnum = p.t| -> tailnum
SELECT * FROM flights f JOIN planes p ON f.tailnum = p.tailnum | -> JOIN, AND, WHERE
SELECT * FROM flights f JOIN weather w ON f.origin = w.origin AND | -> f.time_hour = w.time_hour
SELECT * FROM flights f JOIN planes p ON f.tailnum = p.tailnum JOIN weather w ON | -> f.origin = w.origin
SELECT * FROM flights JOIN weather USING (| -> origin, time_hour
SELECT * FROM flights WHERE | -> year, tailnum
SELECT * FROM flights WHERE car| -> carrier
SELECT * FROM flights WHERE year = 2013 | -> AND, GROUP BY
SELECT * FROM flights WHERE year = 2013 AND mon| -> month
SELECT * FROM flights GR| -> GROUP BY
SELECT carrier, COUNT(*) FROM flights GROUP BY | -> year, carrier
SELECT carrier, COUNT(*) FROM flights GROUP BY carrier OR| -> ORDER BY
SELECT APPROXIMATE COUNT(*) FROM flights ERR| -> ERROR WITHIN
SELECT APPROXIMATE COUNT(*) FROM flights ERROR WITHIN | -> 5%
SELECT APPROXIMATE COUNT(*) FROM flights ERROR WITHIN 5% CONF| -> CONFIDENCE
SELECT APPROXIMATE COUNT(*) FROM flights USING | -> hash, agms
SELECT APPROXIMATE COUNT(*) FROM flights USING tw| -> two_level
SELECT APPROXIMATE COUNT(*) FROM flights SIZE | -> 64 KB
SELECT APPROXIMATE COUNT(*) FROM flights BEHAVIOR | -> 'strict'
SELECT APPROXIMATE COUNT(*) FROM flights OPTIONS (| -> rows, buckets
SELECT APPROXIMATE COUNT(*) FROM flights OPTIONS (sparse = | -> true, false
SELECT q.| FROM (SELECT dest AS d, origin FROM flights) q -> d, origin
SELECT | FROM (SELECT dest AS d FROM flights) q -> d
WITH q AS (SELECT dest FROM flights) SELECT * FROM | -> q
WITH q AS (SELECT dest FROM flights) SELECT q.| FROM q -> dest
WITH q AS (SELECT dest AS d FROM flights) SELECT * FROM q WHERE | -> d
SELECT * FROM flights WHERE dest IN (SELECT | FROM weather) -> origin
SELECT * FROM flights WHERE dest IN (| -> SELECT
SELECT 1; SELECT * FROM pl| -> planes
SELECT 1; SELECT * FROM pl|; SELECT 2 -> planes
SET | -> skimql.seed, skimql.error
SET skimql.| -> seed, error
SET skimql.conf| -> confidence
SET skimql.behavior = | -> 'do_nothing', 'strict'
SET skimql.route = | -> auto, jvm
CREATE | -> SKETCH, SKETCHES
CREATE SK| -> SKETCH, SKETCHES
CREATE SKETCH x | -> ON
CREATE SKETCH x ON | -> flights
CREATE SKETCH x ON flights (| -> year, tailnum
CREATE SKETCH x ON flights (ta| -> tailnum
CREATE SKETCH x ON flights (tailnum | -> CLASS
CREATE SKETCH x ON flights (tailnum) | -> SIZE
CREATE SKETCHES x FOR QUERIES (| -> SELECT
CREATE SKETCHES x FOR QUERIES (SELECT COUNT(*) FROM | -> flights
CREATE SKETCHES x FOR QUERIES (SELECT COUNT(*) FROM flights; SELECT COUNT(*) FROM planes WHERE | -> tailnum, seats
DROP SKETCH | -> s, w
DESCRIBE SKETCH | -> s, w
DESCRIBE | -> flights, SKETCH
EXPLAIN | -> SELECT
EXPLAIN SELECT APPROXIMATE COUNT(*) FROM pla| -> planes
REFRESH SKETCH | -> s
CREATE CONT| -> CONTINUOUS VIEW, CONTINUOUS VIEWS
CREATE STREAM x (id | -> BIGINT, STRING
CREATE STREAM x (id BIGINT) FROM JSON 'p' DELETES WHEN | -> id
CREATE STREAM x (id BIGINT) FROM JSON 'p' DEDUP (id) WITHIN | -> '1 hour'
CREATE CONTINUOUS VIEWS w (v AS (SELECT | FROM flows) -> src, bytes
CREATE CONTINUOUS VIEW x WITH (| -> window, slide, time, watermark
CREATE CONTINUOUS VIEW x WITH (trigger = | -> '1 second', 'available now'
CREATE CONTINUOUS VIEW x AS SELECT APPROXIMATE COUNT(*) FROM fl| -> flows
CREATE CONTINUOUS VIEW x AS SELECT APPROXIMATE COUNT(*) FROM flows f JOIN alerts a ON | -> f.src = a.src
CREATE STREAM x (id BIGINT) FROM | -> JSON, KAFKA
CREATE STREAM x (id BIGINT, `a b` DECIMAL(3,1)) FROM JSON 'p' DEDUP (| -> id, `a b`
SHOW | -> STREAMS, QUERIES
TERMINATE | -> traffic, pairs
PAUSE tr| -> traffic
DESCRIBE STREAM | -> flows, alerts
SELECT * FROM tra| -> traffic
SELECT up| FROM flights -> upper(
SELECT * FROM flights WHERE upp| -> upper(
select count(*) from flights where ori| -> origin
SELECT 'fl| ->
SELECT * FROM flights WHERE carrier = '| ->
SELECT COUNT(*) FROM orders BEHAVIOR 'st| -> 'strict'
SET skimql.max_bytes = '6| -> '64 MB'
SELECT CASE | -> WHEN
SELECT CASE WHEN distance > 5 | FROM flights -> THEN, AND
SELECT CASE WHEN distance > 5 THEN 1 | FROM flights -> ELSE, END
SELECT * FROM flights WHERE dep_delay BETWEEN 1 | -> AND
SELECT * FROM flights WHERE dep_delay IS NOT | -> NULL
SELECT * FROM flights WHERE carrier IN | -> (
SELECT * FROM orders WHERE orderdate > | -> DATE '
SELECT * FROM flights WHERE distance | -> >, <, BETWEEN
SELECT * FROM flights f WHERE EXISTS (SELECT * FROM planes p WHERE p.tailnum = | -> f.tailnum
SELECT carrier, SUM(distance) OVER (| FROM flights -> PARTITION BY
SELECT APPROXIMATE SUM(distance) FROM flights USING hash | -> OPTIONS, SIZE
SELECT c.seg| -> segment
SELECT carrier, AVG(distance) AS far FROM flights GROUP BY carrier ORDER BY | -> far
SELECT carrier, AVG(distance) AS far FROM flights GROUP BY carrier HAVING f| -> far
SELECT * FROM orders WHERE total > (| -> SELECT
EXACT SELECT | FROM flights -> count(*), *
ALTER TABLE orders | -> RENAME TO, DROP
INSERT INTO orders SELECT tot| FROM orders -> total
UPDATE orders SET | -> total
MERGE INTO orders o USING lineitem l ON | -> o.orderkey = l.orderkey
CREATE TABLE x (id | -> BIGINT, STRING
CREATE TEMPORARY VIEW x USING CSV OPTIONS (| -> path
CREATE CONTINUOUS VIEW x WITH (time = | -> ts
SELECT 1 -- fl| ->
SELECT /* fl| ->
SELECT 12| ->
""".strip().splitlines()

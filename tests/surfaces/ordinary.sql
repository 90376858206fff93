SELECT 1
SELECT 'SELECT APPROXIMATE COUNT(*)' AS t
SELECT approx FROM ut
SELECT approx n FROM ut
SELECT approx AS n, sketch FROM ut
SELECT APPROXIMATE FROM ut
SELECT approximate.k FROM ut AS approximate
SELECT sketch.k FROM ut sketch
SELECT error, within FROM (SELECT 1 AS error, 2 AS within)
SELECT /* SELECT APPROXIMATE COUNT(*) */ 1
SELECT 1 -- ERROR WITHIN 5%
SELECT approx, COUNT(*) FROM ut GROUP BY approx
SELECT APPROX_COUNT_DISTINCT(k) FROM ut
SELECT approx_percentile(k, 0.5) FROM ut
SELECT `approximate` FROM ut
WITH approx AS (SELECT 1 AS n) SELECT n FROM approx
VALUES (1), (2)
TABLE ut
FROM ut SELECT k
SELECT * FROM ut a JOIN ut b USING (k)
SELECT k FROM ut UNION ALL SELECT approx FROM ut ORDER BY k
SELECT * FROM range(3)
SELECT exact FROM (SELECT 1 AS exact)
SELECT estimate rows FROM (SELECT 1 AS estimate)
SELECT (SELECT MAX(k) FROM ut) AS m
SELECT k FROM ut WHERE k IN (SELECT approx FROM ut)
SELECT CAST('1' AS INT)::STRING
SHOW TABLES
SHOW VIEWS
SHOW CATALOGS
SHOW COLUMNS IN ut
DESCRIBE ut
DESCRIBE ut sketch
DESCRIBE QUERY SELECT 1
EXPLAIN SELECT k FROM ut
EXPLAIN EXTENDED SELECT approx n FROM ut
SET spark.sql.shuffle.partitions
SET skimql.seed
DECLARE OR REPLACE ext_v = 3
SELECT ext_v
SET VAR ext_v = 4
SELECT ext_v + 1 AS approx
DROP TEMPORARY VARIABLE ext_v
CREATE OR REPLACE TEMP VIEW sketch AS SELECT 1 AS s
SELECT * FROM sketch
DESCRIBE `sketch` s
DESCRIBE TABLE sketch
SELECT s sketch FROM sketch
DROP VIEW sketch
REFRESH TABLE ut
EXECUTE IMMEDIATE 'SELECT 1'
EXECUTE IMMEDIATE 'SELECT ? AS approx' USING 5
BEGIN SELECT 1; SELECT 2; END
CACHE TABLE approx AS SELECT 1
UNCACHE TABLE approx
DROP VIEW approx
SELEC 1
SELECT FROM WHERE
SELECT 1 FRM ut x
SELECT approx FRM ut
SELECT approx n FRM ut x
SELECT¶  k,¶  FROM ut
SELECT nothing FROM ut
SELECT * FROM no_such
SELECT k FROM ut GROUP BY approx
SELECT (
SELECT 'a
/* open
SELECT 1; SELECT 2
CREATE SKETH s ON ut (k)
SHOW SKETHES
SELECT no_such(1)
SELECT 1 +
INSERT INTO no_such VALUES (1)
SELECT COUNT(*) n FROM ut WITHIN 5
CREATE TABLE t (k NOTYPE)
DROP TABLE no_such
SELECT approximate COUNT FROM no_such
SELECT * FROM ut WHERE
DESCRIBE no_such approx
SELECT :a AS approx	{"a": 1}
SELECT k FROM ut WHERE k = :k	{"k": 1}
SELECT ? + ?	[1, 2]
SELECT :missing	{"a": 1}
SELECT approx n FROM ut WHERE k = :k	{"k": 1}
SELECT :s AS s	{"s": "SELECT APPROXIMATE COUNT(*) FROM a"}
SELECT ?	[]
SELECT ?, :a	[1]
SELECT k FROM ut WHERE approx IN (?, ?)	[2, 3]
SELECT IDENTIFIER(:c) FROM ut	{"c": "approx"}
SELECT * FROM IDENTIFIER(:t)	{"t": "ut"}
SELECT * FROM IDENTIFIER(:t)	{"t": "sketch"}
SELECT date_add(DATE '2024-01-01', :n)	{"n": 3}
SELECT * FROM ut LIMIT :n	{"n": 1}
SELECT * FROM ut ORDER BY :c	{"c": 1}
SELECT ALL k FROM ut
SELECT DISTINCT k, sketch FROM ut
SELECT k AS error FROM ut HAVING error > 0
SELECT k FROM ut ORDER BY k DESC NULLS LAST
SELECT k FROM ut SORT BY k
SELECT k FROM ut CLUSTER BY k
SELECT k FROM ut DISTRIBUTE BY k
SELECT k FROM ut LIMIT 1
SELECT k FROM ut LIMIT ALL
SELECT k FROM ut ORDER BY k LIMIT 1 OFFSET 1
SELECT * EXCEPT (k) FROM ut
SELECT ut.* FROM ut
SELECT `sketch` FROM `ut`
SELECT k, sum(approx) FROM ut GROUP BY ALL
SELECT k, approx, count(*) FROM ut GROUP BY ROLLUP (k, approx)
SELECT k, approx, count(*) FROM ut GROUP BY CUBE (k, approx)
SELECT k, approx, count(*), grouping(k) FROM ut GROUP BY GROUPING SETS ((k), (approx), ())
SELECT count(*) FILTER (WHERE k > 0) FROM ut
SELECT k, row_number() OVER (ORDER BY approx) AS sketch FROM ut
SELECT sum(k) OVER w FROM ut WINDOW w AS (PARTITION BY approx ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
SELECT k FROM ut QUALIFY row_number() OVER (ORDER BY k) = 1
SELECT * FROM ut TABLESAMPLE (50 PERCENT) REPEATABLE (1)
SELECT * FROM ut TABLESAMPLE (BUCKET 1 OUT OF 2) REPEATABLE (1)
SELECT * FROM (SELECT k, approx FROM ut) PIVOT (sum(approx) FOR k IN (1, 2))
SELECT * FROM ut UNPIVOT (v FOR n IN (k, approx))
SELECT * FROM ut LATERAL VIEW explode(array(1, 2)) e AS sketch
SELECT * FROM ut, LATERAL (SELECT ut.k + 1 AS n)
SELECT * FROM ut CROSS JOIN ut b
SELECT * FROM ut a LEFT JOIN ut b ON a.k = b.k
SELECT * FROM ut a RIGHT OUTER JOIN ut b ON a.k = b.approx
SELECT * FROM ut a FULL JOIN ut b USING (k)
SELECT * FROM ut a LEFT SEMI JOIN ut b ON a.k = b.k
SELECT * FROM ut a ANTI JOIN ut b ON a.k = b.k
SELECT * FROM ut NATURAL JOIN ut b
SELECT /*+ BROADCAST(b) */ a.k FROM ut a JOIN ut b ON a.k = b.k
SELECT /*+ REPARTITION(2) */ k FROM ut
SELECT k FROM ut INTERSECT SELECT approx FROM ut
SELECT k FROM ut EXCEPT ALL SELECT approx FROM ut
SELECT k FROM ut MINUS SELECT approx FROM ut
(SELECT 1 UNION SELECT 2) ORDER BY 1
SELECT 1 AS x UNION SELECT 2 AS x
WITH a AS (SELECT 1 AS k), b AS (SELECT k + 1 AS k FROM a) SELECT * FROM b
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r
WITH sketches AS (TABLE ut) SELECT sketches.sketch FROM sketches
SELECT EXISTS (SELECT 1 FROM ut WHERE k > 0) AS error
SELECT * FROM ut WHERE EXISTS (SELECT 1 FROM ut b WHERE b.k = ut.k)
SELECT * FROM ut WHERE k NOT IN (SELECT approx FROM ut)
SELECT * FROM ut WHERE k BETWEEN 0 AND 3
SELECT * FROM ut WHERE k IS NOT NULL
SELECT * FROM ut WHERE CAST(k AS STRING) LIKE '1%'
SELECT * FROM ut WHERE CAST(k AS STRING) RLIKE '^1'
SELECT * FROM ut WHERE k <=> approx
SELECT CASE k WHEN 1 THEN 'one' ELSE 'other' END AS exact FROM ut
SELECT if(k > 0, 'a', 'b'), nvl(NULL, k), coalesce(NULL, 1) FROM ut
SELECT transform(array(1, 2), x -> x + 1) AS sketch
SELECT aggregate(array(1, 2, 3), 0, (a, x) -> a + x)
SELECT map('a', 1)['a'], array(1, 2)[0], named_struct('sketch', 1).sketch
SELECT INTERVAL '1' DAY, INTERVAL 3 MONTHS, DATE '2024-02-29', TIMESTAMP '2024-01-01 00:00:00'
SELECT X'1F', 1.5BD, 2L, 3S, 4Y, 1e3, 5.0F
SELECT r'\n', 'it''s', "double", 'a' 'b'
SELECT current_catalog(), current_database()
SELECT current_date() IS NOT NULL
SELECT count(*), count(DISTINCT k), avg(k), min(k), max(k), stddev(k) FROM ut
SELECT approx_count_distinct(k, 0.05) AS approximate FROM ut
SELECT hll_sketch_estimate(hll_sketch_agg(k)) FROM ut
SELECT count_min_sketch(k, 0.5d, 0.5d, 1) FROM ut
SELECT percentile_approx(k, array(0.5, 0.9), 100) FROM ut
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM ut
SELECT listagg(CAST(k AS STRING), ',') WITHIN GROUP (ORDER BY k) FROM ut
SELECT mode() WITHIN GROUP (ORDER BY k) FROM ut
SELECT any_value(k), first(k), last(k), collect_list(k) FROM ut
SELECT regexp_replace('a b', '\\s', ''), split('a,b', ','), concat_ws('-', 'a', 'b')
SELECT try_divide(1, 0), try_cast('x' AS INT)
SELECT explode(array(1, 2)) AS sketch
SELECT stack(2, 1, 2, 3, 4)
SELECT inline(array(struct(1, 2)))
SELECT * FROM explode(array(1, 2))
SELECT * FROM json_tuple('{"a": 1}', 'a')
SELECT from_json('{"a": 1}', 'a INT').a
SELECT to_json(struct(1 AS sketch))
SELECT get_json_object('{"error": 1}', '$.error')
SELECT parse_json('{"a": 1}'):a::INT
SELECT xpath('<a><b>1</b></a>', 'a/b/text()')
SELECT k -> 1 FROM ut
SELECT struct(*) FROM ut
SELECT 1 AS `select`, 2 AS `from`
SELECT 1 AS approximate, 2 AS sketches, 3 AS streams, 4 AS continuous, 5 AS queries
SELECT pause, resume FROM VALUES (1, 2) AS t(pause, resume)
SELECT stream.k FROM ut AS stream
SELECT within.k, error.k FROM ut AS within JOIN ut AS error ON within.k = error.k
SELECT confidence FROM (SELECT 0.9 AS confidence)
SELECT a.approx approx FROM ut a
SELECT approximate.approx FROM ut approximate
SELECT APPROX, COUNT(*) FROM ut GROUP BY APPROX HAVING COUNT(*) > 0
SELECT approx + 1 FROM ut
SELECT approx.n FROM (SELECT named_struct('n', 1) AS approx)
SELECT approx, approximate FROM (SELECT 1 AS approx, 2 AS approximate)
SELECT error error FROM (SELECT 1 AS error)
SELECT exact exact FROM (SELECT 1 AS exact)
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS sketch(k, s)
VALUES (1, 'a'), (2, 'b') AS error(k, s)
SELECT * FROM range(1, 10, 2)
SELECT id AS sketch FROM range(3) WHERE id > 0
SELECT * FROM ut VERSION AS OF 1
SELECT * FROM ut |> WHERE k > 0 |> SELECT k
FROM ut |> AGGREGATE sum(k) AS error GROUP BY approx
FROM ut |> EXTEND k + 1 AS sketch |> ORDER BY sketch
FROM ut |> LIMIT 1
FROM ut SELECT k WHERE k > 0
FROM ut INSERT INTO no_such SELECT k
TABLE no_such
CREATE TEMP VIEW ut_v AS SELECT k FROM ut
CREATE TEMP VIEW ut_v AS SELECT 1
CREATE OR REPLACE TEMPORARY VIEW ut_v (sketch COMMENT 'c') AS SELECT k FROM ut
SELECT sketch FROM ut_v
SHOW VIEWS LIKE 'ut*'
ALTER VIEW ut_v AS SELECT 2 AS approx
SELECT approx FROM ut_v
DESCRIBE EXTENDED ut_v
DROP VIEW ut_v
DROP VIEW IF EXISTS ut_v
DROP VIEW ut_v
CREATE GLOBAL TEMPORARY VIEW ut_g AS SELECT 1 AS approx
SELECT * FROM global_temp.ut_g
DROP VIEW global_temp.ut_g
CREATE TEMPORARY VIEW ut_r USING parquet
CREATE DATABASE ut_db COMMENT 'sketch'
CREATE DATABASE ut_db
CREATE SCHEMA IF NOT EXISTS ut_db
SHOW DATABASES LIKE 'ut_db'
SHOW SCHEMAS
DESCRIBE DATABASE ut_db
ALTER DATABASE ut_db SET DBPROPERTIES ('sketch' = '1')
USE ut_db
SELECT current_schema()
CREATE TABLE approx (sketch INT, error STRING COMMENT 'e', day DATE) USING parquet PARTITIONED BY (day)
CREATE TABLE approx (k INT) USING parquet
CREATE TABLE IF NOT EXISTS approx (k INT) USING parquet
SHOW TABLES
SHOW TABLE EXTENDED LIKE 'nothing*'
SHOW CREATE TABLE approx
DESCRIBE TABLE approx
DESCRIBE approx sketch
DESC approx sketch
DESCRIBE FORMATTED approx sketch
SHOW COLUMNS IN approx
SHOW TBLPROPERTIES approx
SHOW PARTITIONS approx
SELECT sketch FROM approx
SELECT approx.sketch sketch FROM approx
SELECT COUNT(*) AS error FROM approx
ALTER TABLE approx ADD PARTITION (day = DATE '2024-01-01')
ALTER TABLE approx ADD COLUMNS (confidence DOUBLE)
ALTER TABLE approx SET TBLPROPERTIES ('a' = 'b')
ALTER TABLE approx UNSET TBLPROPERTIES ('a')
ALTER TABLE approx RENAME COLUMN sketch TO s
ALTER TABLE approx DROP COLUMN sketch
ALTER TABLE approx ALTER COLUMN sketch COMMENT 'a sketch'
ALTER TABLE approx DROP PARTITION (day = DATE '2024-01-01')
ALTER TABLE approx RECOVER PARTITIONS
MSCK REPAIR TABLE approx
ANALYZE TABLE no_such COMPUTE STATISTICS
TRUNCATE TABLE approx
COMMENT ON TABLE approx IS 'SELECT APPROXIMATE'
COMMENT ON DATABASE ut_db IS NULL
ALTER TABLE approx RENAME TO sketch
DESCRIBE TABLE sketch
SELECT * FROM sketch
DESC `sketch` error
REFRESH TABLE sketch
REFRESH FUNCTION no_such
REFRESH 'a path'
REFRESH a_path
CACHE LAZY TABLE sketch
UNCACHE TABLE IF EXISTS sketch
CLEAR CACHE
INSERT INTO sketch VALUES (1)
INSERT INTO sketch SELECT * FROM no_such
INSERT OVERWRITE sketch SELECT 1
INSERT INTO sketch (no_such) VALUES (1)
DELETE FROM sketch WHERE error = 'a'
UPDATE sketch SET error = 'a'
MERGE INTO sketch USING ut ON sketch.sketch = ut.k WHEN MATCHED THEN DELETE
LOAD DATA INPATH '/nowhere' INTO TABLE sketch
DROP TABLE sketch
DROP TABLE sketch
DROP TABLE IF EXISTS sketch
CREATE TABLE error USING no_format
CREATE TABLE ut_c USING parquet AS SELECT FROM ut
CREATE TABLE ut_c LIKE no_such
CREATE TABLE ut_c (k INT, k INT) USING parquet
CREATE TABLE ut_c (a INT GENERATED ALWAYS AS (1)) USING parquet
CREATE VIEW sketches AS SELECT 1 AS sketch
SHOW CREATE TABLE sketches
SELECT * FROM sketches
ALTER VIEW sketches SET TBLPROPERTIES ('a' = 'b')
DESCRIBE sketches
DROP VIEW sketches
CREATE VIEW sketches AS SELECT * FROM ut
CREATE FUNCTION ut_f AS 'no.such.Class'
CREATE TEMPORARY FUNCTION ut_f AS 'no.such.Class'
CREATE TEMPORARY FUNCTION ut_s(x INT) RETURNS INT RETURN x + 1
SELECT ut_s(1) AS approx
DESCRIBE FUNCTION ut_s
SHOW USER FUNCTIONS LIKE 'ut_*'
SHOW FUNCTIONS LIKE 'approx_*'
DESCRIBE FUNCTION approx_count_distinct
DESCRIBE FUNCTION EXTENDED no_such
DROP TEMPORARY FUNCTION ut_s
DROP FUNCTION IF EXISTS ut_f
DROP FUNCTION no_such_function
CREATE TEMPORARY FUNCTION ut_t(n INT) RETURNS TABLE (sketch INT) RETURN SELECT n
SELECT * FROM ut_t(2)
DROP TEMPORARY FUNCTION ut_t
USE default
DROP DATABASE ut_db CASCADE
DROP DATABASE ut_db
USE no_such
USE CATALOG spark_catalog
SET CATALOG no_such
SHOW CURRENT NAMESPACE
SET spark.sql.ansi.enabled
SET -v
SET no_such_key
SET TIME ZONE 'UTC'
SET TIME ZONE 'nowhere'
SET a b
SET spark.sql.shuffle.partitions = x
RESET no_such_key
SET skimql.x = SELECT APPROXIMATE
RESET skimql.x
ADD JAR '/no/such.jar'
LIST JARS
LIST FILES
ADD FILE '/no/such/file'
EXPLAIN FORMATTED SELECT COUNT(*) FROM ut
EXPLAIN COST SELECT k FROM ut
EXPLAIN CODEGEN SELECT 1
EXPLAIN SELECT FROM
EXPLAIN CREATE TEMP VIEW x AS SELECT 1
EXPLAIN SELECT * FROM no_such
DESCRIBE QUERY SELECT approx n FROM ut
DESCRIBE QUERY SELECT nothing FROM ut
DESCRIBE
DESCRIBE TABLE
SHOW
SHOW NOTHING
SHOW TABLES IN no_such
SHOW COLUMNS IN no_such
SHOW PARTITIONS no_such
SHOW CREATE TABLE no_such
SHOW TBLPROPERTIES no_such
SHOW VARIABLES
SHOW LOCKS
DECLARE VARIABLE sketch INT DEFAULT 5
SELECT sketch
SET VARIABLE sketch = sketch + 1
SELECT session.sketch
DECLARE VARIABLE sketch INT
SET VAR no_such = 1
SET VAR (sketch) = (SELECT 9)
EXECUTE IMMEDIATE 'SELECT sketch'
EXECUTE IMMEDIATE 'SELECT ? + ?' INTO sketch USING 1, 2
EXECUTE IMMEDIATE 'SELEC 1'
EXECUTE IMMEDIATE 'SELECT :a' USING 1 AS a
EXECUTE IMMEDIATE 'SELECT ?'
DROP TEMPORARY VARIABLE IF EXISTS sketch
DROP TEMPORARY VARIABLE sketch
BEGIN DECLARE sketch INT = 1; SET VAR sketch = 2; SELECT sketch; END
BEGIN IF 1 = 1 THEN SELECT 'error' AS within; ELSE SELECT 2; END IF; END
BEGIN DECLARE i INT = 0; WHILE i < 2 DO SET VAR i = i + 1; END WHILE; SELECT i AS approx; END
BEGIN SELEC 1; END
BEGIN SELECT 1
BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'caught' AS error; END; SELECT nothing; END
BEGIN SELECT approx n FROM ut; END
BEGIN FOR r AS SELECT k FROM ut DO SELECT r.k; END FOR; END
BEGIN SIGNAL SQLSTATE '45000'; END
BEGIN CASE WHEN 1 = 2 THEN SELECT 1; ELSE SELECT approx FROM ut; END CASE; END
SELECT 1 FROM
SELECT * FORM ut
SELECT k k k FROM ut
SELECT k,, approx FROM ut
SELECT k FROM ut GROUP k
SELECT k FROM ut ORDER k
SELECT k FROM ut LIMIT
SELECT k FROM ut LIMIT 'x'
SELECT k FROM ut LIMIT -1
SELECT k FROM ut WHERE k =
SELECT k FROM ut WHERE (k = 1
SELECT k FROM ut JOIN
SELECT k FROM ut JOIN ut ON
SELECT k FROM ut a JOIN ut b ON a.k = b.k
SELECT a.k FROM ut a JOIN ut b USING (nothing)
SELECT a.nothing FROM ut a
SELECT b.k FROM ut a
SELECT ut.k.k FROM ut
SELECT count(*) FROM ut WHERE count(*) > 1
SELECT k, count(*) FROM ut
SELECT sum(sum(k)) FROM ut
SELECT count(DISTINCT *) FROM ut
SELECT max(k) FILTER FROM ut
SELECT row_number() FROM ut
SELECT 1 / 0
SELECT CAST('x' AS INT)
SELECT array(1)[5]
SELECT element_at(map('a', 1), 'b')
SELECT DATE 'x'
SELECT TIMESTAMP 'x'
SELECT INTERVAL 1
SELECT 1 + 'x'
SELECT 99999999999999999999999999999999999999999
SELECT 128Y
SELECT concat(1
SELECT abs()
SELECT abs(1, 2)
SELECT abs('x' :: STRING, 1)
SELECT substr()
SELECT approx_percentile(k) FROM ut
SELECT approx_percentile(k, 2) FROM ut
SELECT approx_count_distinct() FROM ut
SELECT APPROX_NO_SUCH(k) FROM ut
SELECT approximate(1)
SELECT approx(1) FROM ut
SELECT sketch(k) FROM ut
SELECT error(k) FROM ut
SELECT exact SELECT 1
SELECT ESTIMATE
SELECT error within FROM ut WHERE nothing
SELECT k AS approx FROM ut WHERE approx = nothing
SELECT (SELECT k, approx FROM ut)
SELECT (SELECT k FROM ut, ut b)
SELECT k FROM ut UNION SELECT k, approx FROM ut
SELECT k FROM ut UNION SELECT array(1)
WITH a AS (SELECT 1) SELECT * FROM b
WITH a AS SELECT 1 SELECT 2
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a
SELECT * FROM ut PIVOT (sum(k) FOR nothing IN (1))
SELECT * FROM ut UNPIVOT (v FOR n IN (nothing))
SELECT * FROM range('x')
SELECT * FROM range()
SELECT * FROM no_such_function(1)
SELECT * FROM explode(1)
VALUES (1), (2, 3)
VALUES
INSERT INTO ut VALUES (1, 2, 3)
DELETE FROM no_such
UPDATE no_such SET a = 1
MERGE INTO no_such USING ut ON 1 = 1 WHEN MATCHED THEN DELETE
ALTER TABLE no_such ADD COLUMNS (a INT)
TRUNCATE TABLE no_such
CREATE
CREATE TABLE
CREATE INDEX i ON ut (k)
DROP
DROP SKETH s
GRANT SELECT ON ut TO u
COMMIT
ROLLBACK
SELECT "approx" FROM ut
SELECT 'unclosed FROM ut
SELECT `unclosed FROM ut
SELECT @x
SELECT #
SELECT $1
SELECT k FROM ut;
;

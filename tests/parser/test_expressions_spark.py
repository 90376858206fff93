"""The canonical text of an expression means to Spark what the user's text means, value by value."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import schema, table

TABLES = schema(
    table(
        "t",
        n="int",
        w="string",
        v="double",
        d="date",
        ts="timestamp",
        a="array<int>",
        s="struct<x:int,Y:string>",
        kv="map<string,int>",
        **{"odd `name": "int"},
    ),
    table("u", k="int", word="string"),
)

# Each is sensitive to what sqlglot's own generator would make of it, or to spacing and letter case.
CONDITIONS = [
    "t.n<=>NULL",
    "n IS NOT DISTINCT FROM 3",
    "w = 'it''s' OR w = 'it\\'s'",
    "w = r'a\\d'",
    'w = "double quoted"',
    "w LIKE 'a\\\\_%'",
    "w LIKE 'a/_%' ESCAPE '/'",
    "w RLIKE '^A.*\\\\d$'",
    "to_date(w, 'yyyy/MM/dd') > DATE '2024-01-01'",
    "d BETWEEN DATE'2024-01-01' AND '2024-03-01'",
    "d + INTERVAL 1 MONTH > add_months(d, 1) - INTERVAL '1' DAY",
    "date_sub(d, 3) < dateadd(DAY, -2, d)",
    "ts >= TIMESTAMP '2024-02-03 04:05:06' AND hour(ts)=4",
    "date_trunc('month', ts) = to_timestamp('2024-02-01')",
    "extract(YEAR FROM d)=2024",
    "n/2 > 1.5 AND n DIV 2 = n / 2",
    "n % 3 = pmod(n, 3)",
    "-n < - -2",
    "n >> 1 = 1 OR n<<2 = 8 OR n & 1 = 1 OR n ^ 1 = 2 OR ~n = -4",
    "log(v + 1) > 0.5 OR log(2, v + 1) > 1",
    "1.5BD < v AND 1L = 1 AND 2S = 2 AND 1e0 = 1D",
    "CAST(w AS INT) IS NULL",
    "try_cast(w AS DECIMAL(5,1)) IS NULL",
    "n::string || w = concat(n, w)",
    "X'61' = CAST('a' AS BINARY)",
    "if(n > 2, w, 'b') IN ('a', 'b', 'A1')",
    "CASE n WHEN 1 THEN true WHEN 2 THEN false ELSE n IS NULL END",
    "coalesce(n, 7) = nvl(n, 7) AND nullif(n, 3) IS NULL",
    "n NOT IN (1, 2) AND NOT n = 4 AND n != 5 AND n <> 6",
    "!(n > 1) OR n >= 2",
    "n > 1 IS TRUE",
    "n = 1 IS NULL",
    "exists(a, e -> e > t.n)",
    "transform(a, n -> n + 1)[0] = 2",
    "aggregate(a, 0, (acc, x) -> acc + x) > 3",
    "a[1] = 2 OR element_at(a, -1) = 3 OR size(a) = 3",
    "s.x = 1 OR t.s.y = 'q'",
    "kv['Key'] = 1 OR kv.Key = 1",
    "kv.key IS NULL",
    "named_struct('n', n).n = n",
    "array_contains(a, n)",
    "`odd ``name` = 1",
    "upper(w) COLLATE UTF8_LCASE = 'a1'",
    "n IN (SELECT k FROM u WHERE word <> 'x')",
    "n > (SELECT min(k) FROM u)",
    "EXISTS (SELECT 1 FROM u WHERE k = 1)",
    "substring(w, 1, 1) = left(w, 1) AND trim(BOTH 'A' FROM w) <> w",
    "split(w, '')[0] = 'a'",
    "date_format(d, 'yyyy-MM') = '2024-02'",
    "typeof(n) = 'int'",
    "from_json('{\"A\": 1}', 'A INT').A = 1",
    "n BETWEEN 1 AND 2 OR (n > 2 AND n < 5)",
    "isnan(v) OR v = 0.0",
]  # fmt: skip


@pytest.mark.spark
def test_canonical_conditions_mean_what_the_users_text_means(spark):
    rows = [
        "(1, 'a1', 0.5D, DATE '2024-01-15', TIMESTAMP '2024-02-03 04:05:06', array(1, 2, 3), "
        "named_struct('x', 1, 'Y', 'q'), map('Key', 1), 1)",
        "(2, 'A1', 2D, DATE '2024-02-29', TIMESTAMP '2024-02-01 00:00:00', array(3), "
        "named_struct('x', 5, 'Y', 'z'), map('key', 2), 0)",
        "(3, '2024/02/01', double('NaN'), DATE '2023-12-31', NULL, array(), NULL, map(), NULL)",
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ]
    names = "n, w, v, d, ts, a, s, kv, `odd ``name`"
    frame = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})")
    spark.sql("SELECT * FROM VALUES (1, 'x'), (2, 'y') AS u(k, word)").createOrReplaceTempView("u")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        filters = [query(f"COUNT(*) FROM t WHERE {c}", TABLES).graph.vertices[0].filter for c in CONDITIONS]
        # Spark evaluates IN and EXISTS of a subquery in WHERE only; the others go into one job.
        for condition, canonical in zip(CONDITIONS, filters, strict=True):
            if "(SELECT" in condition:
                assert frame.where(canonical).count() == frame.where(condition).count(), condition
        plain = [(c, f) for c, f in zip(CONDITIONS, filters, strict=True) if "(SELECT" not in c]
        (written,) = frame.alias("t").selectExpr(*(f"count_if({c})" for c, _ in plain)).collect()
        (rendered,) = frame.selectExpr(*(f"count_if({f})" for _, f in plain)).collect()
        assert list(zip(plain, rendered, strict=True)) == list(zip(plain, written, strict=True))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
        spark.catalog.dropTempView("u")

"""USING sampled_query on Spark: the user's own query on sampled keys, beside what Spark gives exactly."""

from dataclasses import replace

import pytest
from support.sampled_queries import SCHEMA, as_if_large
from support.tables import register

from skimql.errors import BudgetExceeded, ParseError, UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

COLUMNS = "k BIGINT, j BIGINT, v BIGINT"
KEYS = (None, 0, 1, 2, 3, 4)


def _rows(number, salt):
    return [
        (KEYS[(7 * i + salt) % 6], KEYS[(5 * i + i // 7 + salt) % 6], (3 * i + salt) % 5)
        for i in range(number)
    ]


TABLES = {name: (COLUMNS, _rows(9 + n, n)) for n, name in enumerate("abcd")}
# Larger ones, of many keys and some NULLs.
LARGE = {
    "e": (COLUMNS, [(None if i % 50 == 0 else i // 2, i % 7, i % 11) for i in range(4000)]),
    "f": (COLUMNS, [(None if i % 40 == 0 else i // 3, i % 5, i % 13) for i in range(4000)]),
}

# Forms in which Spark might mean something else than DuckDB, which the rule is held against on random queries.
FORMS = (
    "a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.v > 1) OR a.j IN (SELECT c.k FROM c WHERE c.k = a.k)",
    "a FULL JOIN b USING (k) LEFT ANTI JOIN c ON a.k <=> c.k AND c.v = 4",
    "(SELECT k, v FROM a EXCEPT ALL SELECT k, v FROM b) t LEFT SEMI JOIN d ON t.k = d.k",
    "a, b RIGHT JOIN c ON a.k = c.k",
    "a x JOIN b y ON x.k = y.k, LATERAL (SELECT COUNT(*) AS n FROM c WHERE c.k = x.k HAVING COUNT(*) > 1) t",
    "(SELECT k, v FROM a QUALIFY COUNT(*) OVER (PARTITION BY k) > 1) t FULL JOIN b ON t.k = b.k",
    "(SELECT v FROM a UNION ALL SELECT v FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.k = b.k)) t",
)


@pytest.fixture
def tables(session):
    register(session, **TABLES)
    return session


def test_in_spark_the_results_of_keys_put_together_are_the_result(tables):
    halves = ("`{}` IS NULL OR `{}` % 2 = 0", "`{}` % 2 = 1")
    texts = []
    for number, form in enumerate(FORMS):
        text = f"SELECT APPROXIMATE COUNT(*) AS n, COUNT(v) AS c FROM {form} USING sampled_query".replace(
            "v)", "1)"
        )
        query = resolve_sampled(parse_statement(text), SCHEMA)
        way = query.ways[0]
        assert len(way.roles) > 1
        whole = query.by_key(
            type(way)("", "", (), "", frozenset(), ()),
            str,
            (f"{number} AS f", "'all' AS p", "COUNT(*) AS n"),
            (),
        )
        texts.append(f"({whole})")
        for half in halves:
            kept = lambda role, half=half: half.format(role.column, role.column)  # noqa: E731
            part = query.by_key(way, kept, (f"{number} AS f", "'part' AS p", "COUNT(*) AS n"), ())
            texts.append(f"({part})")
    with tables.tables.statement(" ".join(TABLES)):
        rows = tables.context.spark.sql(" UNION ALL ".join(texts)).collect()
    for number, form in enumerate(FORMS):
        sums = {p: sum(r.n for r in rows if (r.f, r.p) == (number, p)) for p in ("all", "part")}
        assert sums["all"] == sums["part"] > 0, form


def test_a_sample_of_keys_answers_what_sketches_cannot(session):
    register(session, **LARGE)
    source = "FROM e LEFT JOIN f ON e.k = f.k AND e.j <> f.j WHERE NOT EXISTS (SELECT 1 FROM f g WHERE g.k = e.k AND g.v = 5)"
    items = "e.j, COUNT(*) AS n, SUM(f.v) AS s, AVG(e.v) AS m, COUNT_IF(f.k IS NULL) AS u"
    text = f"SELECT APPROXIMATE {items} {source} GROUP BY e.j HAVING COUNT(*) > 10 ORDER BY e.j"
    answer = session.compare(f"{text} SIZE 60 KB USING sampled_query SEED 4")
    assert answer.method == "sampled_query"
    assert len(answer.rows) == 7
    assert any("keys of k sampled" in note for note in answer.notes)
    inside = total = 0
    for row, truth in zip(answer.rows, answer.compared, strict=True):
        for cell, true in zip(row[1:], truth[1:], strict=True):
            assert not cell.exact
            assert not cell.certified
            total += 1
            inside += cell.low <= float(true) <= cell.high
    assert inside >= total - 4


def test_deviations_and_quantiles_are_estimated_beside_sums(session):
    register(session, **LARGE)
    items = (
        "STDDEV(e.v) AS s, VAR_POP(e.v) FILTER (WHERE f.v > 3) AS v, COVAR_SAMP(e.v, f.v) AS c, CORR(e.v, f.v) AS r, "
        "MEDIAN(e.v) AS m, APPROX_PERCENTILE(f.v, 0.9) FILTER (WHERE f.v <> 5) AS q, ROUND(STD(f.v), 2) AS w, "
        "AVG(e.v) FILTER (WHERE f.v > 3) AS a"
    )
    text = (
        f"SELECT APPROXIMATE {items} FROM e LEFT JOIN f ON e.k = f.k SIZE 120 KB USING sampled_query SEED 2"
    )
    answer = session.compare(text)
    for cell, true in zip(answer.rows[0], answer.compared[0], strict=True):
        assert not cell.exact
        assert not cell.certified
        assert cell.low <= float(true) <= cell.high
        assert cell.high < float("inf")


def test_rolled_up_groups_add_up_and_those_of_few_keys_are_uncertain(session):
    register(session, **LARGE)
    text = (
        "SELECT APPROXIMATE e.j, f.v % 2 AS h, COUNT(*) AS n FROM e LEFT JOIN f ON e.k = f.k "
        "GROUP BY ROLLUP(e.j, f.v % 2) ORDER BY e.j, h SIZE 60 KB USING sampled_query"
    )
    answer = session.sql(text)
    exact = session.sql(
        text.replace("APPROXIMATE ", "").replace(" SIZE 60 KB USING sampled_query", "")
    ).collect()
    assert len(answer.rows) == len(exact) == 7 * 4 + 1
    inside = sum(row[-1].low <= true.n <= row[-1].high for row, true in zip(answer.rows, exact, strict=True))
    # The groups share their keys: of a sample that is off several are.
    assert inside >= 20
    total = next(
        row[-1].value for row in answer.rows if row[-1].value == max(r[-1].value for r in answer.rows)
    )
    assert total == pytest.approx(sum(r[-1].value for r in answer.rows) / 3)
    assert not any(answer.uncertain)
    assert any(note.startswith("groups of fewer than about") for note in answer.notes)


def test_answers_are_refined_until_the_error_is_met(session, monkeypatch):
    register(session, **LARGE)
    as_if_large(monkeypatch)
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM e JOIN f ON e.k = f.k AND e.v < f.v"
    looks = list(session.refine(f"{text} ERROR WITHIN 0.1% USING sampled_query"))
    assert [a.exact for a in looks] == [False] * (len(looks) - 1) + [True]
    assert len(looks) > 1
    assert looks[0].value == session.sql(f"{text} ERROR WITHIN 90% USING sampled_query").value
    for bad, code in (("SELECT 1", "SKIMQL_NOT_AN_ANSWER"), (f"{text} USING sampled_query", "SKIMQL_CLAUSE")):
        session.settings = replace(session.settings, error=None)
        with pytest.raises(UnsupportedQuery) as raised:
            session.refine(bad)
        assert raised.value.code == code


def test_a_size_is_used_though_keys_have_many_tuples(session):
    few = [(i % 400, i % 7, i % 11) for i in range(8000)]
    register(session, e=(COLUMNS, few), f=(COLUMNS, few[:400]))
    answer = session.sql(
        "SELECT APPROXIMATE COUNT(*) AS n, SUM(e.v) AS s FROM e LEFT JOIN f ON e.k = f.k SIZE 8 KB USING sampled_query"
    )
    assert 2048 <= answer.bytes_used <= 8192
    assert not answer.exact
    assert len({a.attempt.plan.seed for a in answer.attempts}) == len(answer.attempts) > 1
    # Where all keys fit there is nothing to sample.
    assert session.sql("SELECT APPROXIMATE SUM(k) AS n FROM f SIZE 64 KB USING sampled_query").exact


def test_small_inputs_are_run_on_all_keys_and_that_is_said(tables):
    source = "FROM a LEFT JOIN b ON a.k = b.k WHERE a.v > (SELECT AVG(c.v) FROM c WHERE c.k = a.k)"
    text = f"SELECT APPROXIMATE b.v AS g, COUNT(*) AS n, COUNT(DISTINCT a.k) AS d {source} GROUP BY b.v ORDER BY n DESC, g"
    answer = tables.sql(f"{text} ERROR WITHIN 5% USING sampled_query")
    exact = tables.sql(text.replace("APPROXIMATE ", ""))
    assert answer.exact
    assert [tuple(c.value if hasattr(c, "value") else c for c in row) for row in answer.rows] == [
        tuple(r) for r in exact.collect()
    ]
    assert answer.method == "sampled_query"
    assert answer.target == "met"
    assert "all keys of k: the query as Spark runs it" in answer.notes


def test_where_a_sample_is_not_cheaper_none_is_drawn_and_one_that_was_too_small_is_followed_by_what_is(
    session, monkeypatch
):
    register(session, **LARGE)
    as_if_large(monkeypatch)
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM e JOIN f ON e.k = f.k AND e.v < f.v ERROR WITHIN 10% USING sampled_query"
    answer = session.sql(text)
    assert answer.exact
    assert [a.outcome for a in answer.attempts] == ["met"]
    assert "all keys of k: the query as Spark runs it" in answer.notes
    assert any(note.startswith("±10 % of the value is expected to take ") for note in answer.notes)
    # EXPLAIN does not count the tuples of DataFrames.
    assert "predicted" not in str(session.sql(f"EXPLAIN {text}"))
    # Of a condition on a DataFrame nothing is known before: larger samples follow as long as they cost no more than all keys.
    unknown = session.sql(text.replace("ERROR", "WHERE e.v > 1 ERROR"))
    assert (unknown.exact, unknown.target) == (False, "unknown")
    assert max(a.attempt.rate for a in unknown.attempts) <= 0.25
    assert unknown.attempts[-1].half_width <= 0.1 or any("more keys would take" in n for n in unknown.notes)
    # A wider one is not known to be met, as nothing bounds what unseen keys add; a behaviour takes that for missed.
    wide = session.sql(text.replace("10%", "90%"))
    assert (wide.exact, wide.target) == (False, "unknown")
    full = session.sql(text.replace("10%", "90%") + " BEHAVIOR 'run_on_full_table'")
    assert (full.exact, [a.attempt.rate for a in full.attempts]) == (True, [1.0])
    assert "no sample would be certain enough for run_on_full_table" in full.notes


def test_explain_shows_what_spark_will_run(tables):
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) USING sampled_query"
    plan = str(tables.sql(f"EXPLAIN {text}"))
    assert "sampled query, one in" in plan
    assert "the keys k of a, b" in plan
    assert "xxhash64('" in plan
    assert "sampled_query" in str(tables.sql(f"EXPLAIN FORMAT JSON {text}"))
    assert str(tables.sql(f"EXPLAIN FORMAT MERMAID {text}")).startswith("graph")


def test_clauses_that_cannot_be_honoured_are_refused(tables):
    text = "SELECT APPROXIMATE v, COUNT(*) AS n FROM a GROUP BY ROLLUP (v)"
    refused = {
        "ERROR WITHIN 5% BEHAVIOR 'partial_run_on_base_table' USING sampled_query": "SKIMQL_CLAUSE",
        "USING sampled_query OPTIONS (cache = true)": "SKIMQL_CLAUSE",
        "USING sampled_query OPTIONS (buckets = 64)": "SKIMQL_CLAUSE",
    }
    for clauses, code in refused.items():
        with pytest.raises(UnsupportedQuery) as raised:
            tables.sql(f"{text} {clauses}")
        assert raised.value.code == code
        assert raised.value.hint
    with pytest.raises(UnsupportedQuery):
        tables.sql("CREATE SKETCH s ON a (k) USING sampled_query")
    with pytest.raises(UnsupportedQuery):
        tables.sql("ESTIMATE ROWS FOR SELECT * FROM a JOIN b ON a.k = b.k USING sampled_query")


def test_more_groups_than_are_told_apart_are_refused(session, monkeypatch):
    from skimql.engine.execution import sampled_query

    register(session, **LARGE)
    monkeypatch.setattr(sampled_query, "MOST_GROUPS", 3)
    with pytest.raises(BudgetExceeded) as raised:
        session.sql("SELECT APPROXIMATE j, COUNT(*) AS n FROM e GROUP BY j SIZE 20 KB USING sampled_query")
    assert raised.value.code == "SKIMQL_TOO_MANY_GROUPS"


def test_a_refused_query_says_that_a_sample_of_keys_answers_it_and_typed_it_does(tables):
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k"
    with pytest.raises(UnsupportedQuery) as raised:
        tables.sql(text)
    assert raised.value.hint == "the same with USING sampled_query at its end, or EXACT SELECT ..."
    assert (
        tables.sql(f"{text} USING sampled_query").value
        == tables.sql(f"EXACT {text}".replace("APPROXIMATE ", "")).value
    )
    # Where an error is asked it is answered so at once, and that is said.
    answer = tables.sql(f"{text} ERROR WITHIN 5%")
    assert answer.method == "sampled_query"
    assert any(note.startswith("by a sample of keys: ") for note in answer.notes)
    assert "sampled query, " in str(tables.sql(f"EXPLAIN {text} ERROR WITHIN 5%"))
    with pytest.raises(UnsupportedQuery):
        tables.sql("SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k < b.k ERROR WITHIN 5%")
    # What it cannot answer either has the way out that it had.
    with pytest.raises(UnsupportedQuery) as raised:
        tables.sql("SELECT APPROXIMATE COUNT(*) AS n FROM (SELECT k FROM a LIMIT 2) t")
    assert "sampled_query" not in raised.value.hint


def test_groups_at_the_edge_of_limit_run_exactly_where_that_is_asked(session, monkeypatch):
    register(session, **LARGE)
    as_if_large(monkeypatch)
    group = "CASE WHEN e.j < 6 THEN e.j END"
    source = "FROM e LEFT JOIN f ON e.k = f.k AND (e.j > 0 OR f.v > 11)"
    text = f"SELECT APPROXIMATE {group} AS g, COUNT(*) AS n, STDDEV(f.v) AS s {source} GROUP BY g ORDER BY n DESC, g LIMIT 3"
    asked = f"{text} ERROR WITHIN 60% BEHAVIOR 'partial_run_on_base_table' USING sampled_query"
    answer = session.sql(asked)
    exact = session.sql(text.replace("APPROXIMATE ", "")).collect()
    assert answer.method == "sampled_query"
    assert any("run exactly, since" in note for note in answer.notes)
    assert [row[0] for row in answer.rows] == [row.g for row in exact]
    assert [row[1].value for row in answer.rows] == [row.n for row in exact]
    assert [row[2].value for row in answer.rows] == pytest.approx([row.s for row in exact])
    assert all(row[1].exact for row in answer.rows)


def test_keys_that_many_tuples_have_are_there_for_certain(session, tmp_path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    keys = np.where(rng.random(6000) < 0.3, 7, rng.integers(0, 3000, 6000))
    pq.write_table(pa.table({"k": keys, "v": rng.integers(0, 9, 6000)}), tmp_path / "h.parquet")
    session.table("h", tmp_path / "h.parquet")
    register(session, f=LARGE["f"])
    text = "SELECT APPROXIMATE COUNT(*) AS n, SUM(h.v) AS s FROM h LEFT JOIN f ON h.k = f.k AND f.v < 12 SIZE 10 KB"
    answer = session.compare(f"{text} USING sampled_query SEED 3")
    assert answer.attempts[-1].attempt.dense == (7,)
    assert any(", and 1 that many tuples have: " in note for note in answer.notes)
    for cell, true in zip(answer.rows[0], answer.compared[0], strict=True):
        assert cell.low <= float(true) <= cell.high
        # Drawn with one key in ten the hot one would be a third of the sum, or three times it.
        assert cell.value == pytest.approx(float(true), rel=0.2)
    assert "all tuples of 1 keys" in str(session.sql(f"EXPLAIN {text} USING sampled_query"))
    # The first tuples of a DataFrame tell as much.
    table = pa.table({"k": keys, "v": rng.integers(0, 9, 6000)})
    session.table("h", session.spark.createDataFrame(table))
    assert session.sql(f"{text} USING sampled_query SEED 3").attempts[-1].attempt.dense == (7,)


def test_files_tell_min_and_max_of_a_whole_column_and_a_sample_their_bounds(session, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    large = 2**60 + 1
    pq.write_table(pa.table({"k": [1, 2, None], "v": [3, -4, large]}), tmp_path / "p.parquet")
    session.table("p", tmp_path / "p.parquet")
    register(session, f=LARGE["f"])
    answer = session.sql("SELECT APPROXIMATE MAX(v) AS m, MIN(v) - 1 AS l FROM p")
    assert [c.value for c in answer.rows[0]] == [large, -5]
    assert all(c.exact for c in answer.rows[0])
    assert answer.method == "nothing"
    text = "SELECT APPROXIMATE MAX(p.v) AS m, lower_bound(MAX(f.v)) AS w, COUNT(*) AS n FROM p LEFT JOIN f ON p.k = f.k"
    row = session.sql(f"{text} USING sampled_query").rows[0]
    assert (row[0].value, row[0].exact, row[1], row[2].value) == (large, True, 8.0, 7)
    for query, way_out in (
        (
            "SELECT APPROXIMATE MAX(v) AS m FROM f",
            "lower_bound(MAX(v)) with USING sampled_query, which is certain, or EXACT SELECT ...",
        ),
        (
            "SELECT APPROXIMATE MAX(p.v) AS m FROM p JOIN f ON p.k = f.k ERROR WITHIN 5%",
            "lower_bound(MAX(p.v)) with USING sampled_query, which is certain, or EXACT SELECT ...",
        ),
    ):
        with pytest.raises(UnsupportedQuery, match="may be that of a single tuple") as raised:
            session.sql(query)
        assert raised.value.hint == way_out


def test_of_two_classes_that_is_taken_which_reads_less_for_the_same_error(monkeypatch):
    from skimql.engine.queries.sampled_plan import SampledPlan
    from skimql.engine.queries.sampled_tables import SampledTables
    from skimql.engine.settings import Settings

    text = (
        "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j USING sampled_query"
    )
    query = resolve_sampled(parse_statement(text), SCHEMA)
    keys = {"k": 2e3, "j": 1e9}
    tuples = {"a": 1e6, "b": 1e6, "c": 2e5}
    monkeypatch.setattr(SampledTables, "keys", lambda self, role: min(keys[role.column], tuples[role.table]))
    monkeypatch.setattr(SampledTables, "tuples", lambda self, table: tuples[table])
    plan = SampledPlan(None, query, Settings(error=0.05), jobs=False)

    def taken():
        return query.ways[min(range(len(query.ways)), key=lambda n: plan._order(n, None))].name

    # Reading c as a whole is cheaper, but of 2,000 keys nearly all are to be read.
    assert taken() == "j"
    keys["k"] = 1e9
    assert taken() == "k"


def test_groups_of_text_under_a_collation_are_refused_as_nothing_here_tells_which_are_equal(
    session, monkeypatch
):
    as_if_large(monkeypatch)
    session.spark.sql(
        "CREATE OR REPLACE TEMP VIEW folded AS"
        " SELECT IF(id % 2 = 0, 'a', 'A') COLLATE UTF8_LCASE AS c, id AS k FROM range(4000)"
    )
    text = "SELECT APPROXIMATE c, COUNT(*) AS n FROM folded GROUP BY c USING sampled_query"
    with pytest.raises(UnsupportedQuery) as raised:
        session.sql(text)
    fault = raised.value
    assert fault.code == "SKIMQL_GROUP_TYPE"
    assert text[slice(*fault.span)] == "c"
    assert fault.hint
    # As a filter, which is Spark's, it is what it is: 'a' and 'A' are equal.
    found = session.sql("SELECT APPROXIMATE COUNT(*) AS n FROM folded WHERE c = 'A' USING sampled_query")
    assert found.low <= 4000 <= found.high


def test_what_spark_refuses_of_the_users_own_query_is_said_of_it(tables):
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.kk = b.k USING sampled_query"
    with pytest.raises(ParseError) as raised:
        tables.sql(text)
    fault = raised.value
    assert fault.code == "SKIMQL_SPARK_REFUSES"
    assert text[slice(*fault.span)] == "a.kk"
    assert "`a`.`kk` cannot be resolved" in fault.message
    assert "a.k" in fault.hint


def test_what_spark_refuses_of_a_sample_is_said_of_the_users_own_query_where_it_refuses_that(
    session, monkeypatch
):
    as_if_large(monkeypatch)
    register(session, **LARGE)
    text = "SELECT APPROXIMATE {} AS n FROM e JOIN f ON e.k = f.{} USING sampled_query"
    misspelt = text.format("COUNT(*)", "kk")
    with pytest.raises(ParseError) as raised:
        session.sql(misspelt)
    assert misspelt[slice(*raised.value.span)] == "f.kk"
    assert "f.k" in raised.value.hint
    # Of what is ours alone, sums as DOUBLE, it is not.
    with pytest.raises(UnsupportedQuery, match="by its keys") as refused:
        session.sql(text.format("SUM(INTERVAL '1' DAY)", "k"))
    assert refused.value.hint == "EXACT SELECT ..."


def test_columns_by_the_whole_names_of_their_tables_are_read(session, monkeypatch):
    as_if_large(monkeypatch)
    spark = session.spark
    spark.sql("CREATE OR REPLACE GLOBAL TEMP VIEW whole AS SELECT id AS k, 2 AS v FROM range(4000)")
    text = "FROM global_temp.whole JOIN range(4000) r ON global_temp.whole.k = r.id WHERE global_temp.whole.v = 2"
    answer = session.sql(f"SELECT APPROXIMATE SUM(global_temp.whole.v) AS s {text} USING sampled_query")
    assert answer.method == "sampled_query"
    assert answer.low <= 8000 <= answer.high


def test_a_query_on_sampled_keys_is_explained_as_it_ran(session, monkeypatch):
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM e WHERE EXISTS (SELECT 1 FROM f WHERE f.k = e.k) USING sampled_query"
    register(session, **LARGE)
    for large in (False, True):
        if large:
            as_if_large(monkeypatch)
        plan = str(session.sql(f"EXPLAIN ANALYZE {text}"))
        assert "sampled query" in plan, plan
        assert str(session.sql(f"EXPLAIN ANALYZE FORMAT MERMAID {text}")).startswith("graph")


def test_bounds_of_values_that_are_run_exactly_are_the_values(session):
    register(session, f=LARGE["f"])
    f, items = "FROM f JOIN f AS e ON f.k = e.k", "COUNT(*) AS n, lower_bound(n) AS l, upper_bound(SUM(f.v))"
    wanted = session.sql(f"EXACT SELECT COUNT(*), SUM(f.v) {f}").rows[0]
    for clause in (
        "ERROR WITHIN 5%",
        "ERROR WITHIN 1% BEHAVIOR 'run_on_full_table' USING hash OPTIONS (rows = 3, buckets = 2)",
        "ERROR WITHIN 0.1% BEHAVIOR 'run_on_full_table' USING sampled_query",
    ):
        text = f"SELECT APPROXIMATE {items}, absolute_error(n), VAR_POP(f.v) AS s {f} {clause}"
        if "sampled" not in clause:
            text = text.replace(", VAR_POP(f.v) AS s", "")
        answer = session.sql(text)
        count, *bounds = answer.rows[0][:4]
        assert (count.value, count.exact, *bounds) == (wanted[0], True, *map(float, wanted), 0.0)
        assert answer.names[:6] == ("n", "n_low", "n_high", "l", "upper_bound(sum(v))", "absolute_error(n)")
        assert answer.columns[:4] == ("n", "l", "upper_bound(sum(v))", "absolute_error(n)")
        assert [str(t) for t in answer.types[:4]] == ["int64", "double", "double", "double"]
        assert session.compare(text).compared[0][:2] == (wanted[0], float(wanted[0]))

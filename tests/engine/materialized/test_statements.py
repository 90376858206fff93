"""Statements about kept sketches on the shared Spark session: what is built, appended, refreshed, moved and refused."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import forget_views

from skimql import DataError, Session, SkimqlError, UnknownName, UnsupportedQuery
from skimql.engine.execution import build as maintain
from skimql.engine.queries import backend

pytestmark = pytest.mark.spark

COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM orders o JOIN lines l ON o.id = l.oid"


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """Files of orders and lines, a catalog with a sketch of each, and a copy of it all."""
    home = tmp_path_factory.mktemp("home") / "now"
    orders = write(home / "orders.parquet", id=[1, 2, 3, 4], status=["F", "O", "F", "O"])
    write(home / "lines" / "day=1" / "a.parquet", oid=[1, 1, 2, 7], price=[10, 20, 30, 40])
    session = Session(spark, catalog=home / "catalog")
    session.table("orders", orders)
    session.table("lines", home / "lines")
    session.sql("CREATE SKETCH s_orders ON orders (id)")
    session.sql("CREATE SKETCH s_lines ON lines (oid CLASS id) FOR SUM(price)")
    shutil.copytree(home, home.parent / "copy")
    return home


@pytest.fixture
def home(made):
    """The folder as it was made, times of the files included."""
    shutil.rmtree(made)
    shutil.copytree(made.parent / "copy", made)
    return made


@pytest.fixture
def kept(spark, home):
    """A session on that catalog."""
    yield Session(spark, catalog=home / "catalog")
    forget_views(spark)


@pytest.fixture
def scans(monkeypatch):
    """The tables that are scanned, one entry a pass."""
    seen = []
    original = maintain.prepare

    def prepare(plan, scan, *rest):
        seen.append(scan.table)
        return original(plan, scan, *rest)

    apart = backend.built_on

    def built_on(spark, sql, head, *rest):
        seen.append(head.table)
        return apart(spark, sql, head, *rest)

    monkeypatch.setattr(maintain, "prepare", prepare)
    monkeypatch.setattr(backend, "built_on", built_on)
    return seen


def again(session, home):
    """Another session on the same catalog."""
    return Session(session.spark, catalog=home / "catalog")


def test_a_second_session_answers_from_the_folder_without_a_scan(kept, home, scans):
    sql = "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s, AVG(l.price) AS a FROM orders o JOIN lines l ON o.id = l.oid"
    answer = again(kept, home).sql(sql)
    assert [c.value for c in answer.rows[0]] == [3, 60, 20]
    assert answer.notes[0].startswith("from the kept sketches s_orders (as of ")
    assert len(answer.notes) == 1, "nothing has changed since"
    assert scans == []


def test_what_is_missing_is_built_at_the_kept_seed_size_and_class(kept, home, scans):
    session = again(kept, home)
    session.sql(
        "CREATE OR REPLACE SKETCH s_lines ON lines (oid CLASS id) OPTIONS (seed = 9, buckets = 128, sparse = false)"
    )
    session.sql("DROP SKETCH s_orders")
    scans.clear()
    answer = session.sql(f"{COUNT} WHERE o.status = 'F'")
    assert scans == ["orders"]
    assert (answer.plan.seed, answer.plan.synopses[0].buckets) == (9, 128)
    assert answer.low <= 2 <= answer.high
    assert "built for this query: orders by id" in answer.notes


def test_cache_keeps_what_a_query_builds(kept, home, scans):
    session = again(kept, home)
    sql = f"{COUNT} WHERE o.status = 'F' AND l.price < 25"
    session.sql("SET skimql.cache = true")
    assert session.sql(sql).value == 2
    assert sorted(scans) == ["lines", "orders"]
    scans.clear()
    answer = again(kept, home).sql(sql)
    assert (answer.value, scans) == (2, [])
    assert "cached_lines_id" in answer.notes[0] or "cached_orders_id" in answer.notes[0]


def test_append_adds_new_files_and_refuses_what_the_sketch_has(kept, home):
    new = write(home / "lines" / "day=2" / "b.parquet", oid=[3, 3, 3], price=[1, 2, 3])
    before = kept.sql(COUNT)
    assert any("1 new file" in n for n in before.notes), "the table has grown since"
    assert not before.estimate.certified
    done = kept.sql("APPEND SKETCH s_lines FROM lines WHERE day = 2")
    assert done.notes == ("3 tuples added",)
    answer = kept.sql(
        "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l ON o.id = l.oid"
    )
    assert [c.value for c in answer.rows[0]] == [6, 66]
    assert len(answer.notes) == 1, "and now it has all of it"
    assert all(c.certified for c in answer.rows[0])
    for source in (
        "lines WHERE day = 2",
        "lines WHERE day >= 2",
        "lines",
        f"'{new}'",
        f"'{home}/lines/day=1'",
    ):
        with pytest.raises(UnsupportedQuery, match="already has") as caught:
            kept.sql(f"APPEND SKETCH s_lines FROM {source}")
        assert caught.value.code == "SKIMQL_ALREADY_APPENDED"
        assert caught.value.span is not None
    assert kept.sql("SHOW SKETCHES").records()[0]["tuples"] == 7


def test_a_link_to_what_was_read_is_that(kept, home):
    more = write(home / "more.parquet", oid=[1, 2], price=[1, 2])
    (home / "link.parquet").symlink_to(more)
    kept.sql(f"APPEND SKETCH s_lines FROM '{more}'")
    with pytest.raises(UnsupportedQuery, match="already has") as caught:
        kept.sql(f"APPEND SKETCH s_lines FROM '{home}/link.parquet'")
    assert caught.value.code == "SKIMQL_ALREADY_APPENDED"
    assert kept.sql(COUNT).value == 3 + 2
    _, note = kept.sql(f"APPEND SKETCH s_lines FROM '{home}/link.parquet' WEIGHT (2)").notes
    assert note.startswith(f"{more} was read before, at ")


def test_a_file_that_is_counted_in_another_way_too_is_told(kept, home):
    more = write(home / "more.parquet", oid=[1, 2], price=[1, 2])
    assert kept.sql(f"APPEND SKETCH s_lines FROM '{more}'").notes == ("2 tuples added",)
    _, note = kept.sql(f"APPEND SKETCH s_lines FROM '{more}' DELETES WHEN price = 2").notes
    assert note.startswith(f"{more} was read before, at ")
    assert kept.sql(COUNT).value == 3 + 2, "the first counts twice, the second no more"


def test_the_same_files_in_disjoint_parts_may_be_appended_one_by_one(kept, home):
    more = write(home / "more.parquet", oid=[1, 2, 3, 4], price=[1, 2, 3, 4])
    kept.sql(f"APPEND SKETCH s_lines FROM '{more}' WHERE price <= 2")
    kept.sql(f"APPEND SKETCH s_lines FROM '{more}' WHERE price > 3")
    with pytest.raises(UnsupportedQuery, match=r"more.parquet"):
        kept.sql(f"APPEND SKETCH s_lines FROM '{more}' WHERE price >= 2")
    assert kept.sql("SHOW SKETCHES").records()[0]["tuples"] == 7


def test_a_file_that_has_changed_since_is_refused_until_refreshed(kept, home):
    more = write(home / "more.parquet", oid=[1], price=[1])
    kept.sql(f"APPEND SKETCH s_lines FROM '{more}'")
    write(home / "more.parquet", oid=[1, 2, 3], price=[1, 2, 3])
    with pytest.raises(DataError, match="has changed since") as caught:
        kept.sql(f"APPEND SKETCH s_lines FROM '{more}'")
    assert caught.value.code == "SKIMQL_SOURCE_CHANGED"
    assert any("1 changed file" in n for n in kept.sql(COUNT).notes)
    kept.sql("REFRESH SKETCH s_lines")
    answer = kept.sql(COUNT)
    assert (answer.value, len(answer.notes)) == (3 + 3, 1), (
        "the table and what was appended from elsewhere, once each"
    )


def test_files_that_were_rewritten_are_not_taken_for_new_ones(kept, home):
    """A compaction puts the tuples that the sketch has into a file that it has not."""
    (home / "lines" / "day=1" / "a.parquet").rename(home / "lines" / "day=1" / "compacted.parquet")
    for condition in ("", " WHERE day = 1"):
        with pytest.raises(
            DataError, match=r"a\.parquet, which sketch s_lines has read, is no file of"
        ) as caught:
            kept.sql(f"APPEND SKETCH s_lines FROM lines{condition}")
        assert caught.value.code == "SKIMQL_SOURCE_CHANGED"
    kept.sql("REFRESH SKETCH s_lines")
    assert kept.sql(COUNT).value == 3


def test_append_refuses_columns_of_other_types_and_tables_without_them(kept, home):
    text = write(home / "text.parquet", oid=["1"], price=[1])
    none = write(home / "none.parquet", other=[1])
    double = write(home / "double.parquet", oid=[1], price=[1.5])
    with pytest.raises(DataError, match="oid is string, and was bigint"):
        kept.sql(f"APPEND SKETCH s_lines FROM '{text}'")
    with pytest.raises(DataError, match="price is double, and was bigint"):
        kept.sql(f"APPEND SKETCH s_lines FROM '{double}'")
    with pytest.raises(UnknownName, match="no column oid"):
        kept.sql(f"APPEND SKETCH s_lines FROM '{none}'")
    with pytest.raises(DataError, match="no file"):
        kept.sql("APPEND SKETCH s_lines FROM 'nosuch.parquet'")


def test_append_refuses_a_filter_over_columns_of_other_types_and_another_time_zone(kept, home, spark):
    kept.sql("CREATE SKETCH dear ON lines (oid CLASS id) WHERE price > '6'")
    text = write(home / "text.parquet", oid=[1, 2], price=["10", "7"])
    with pytest.raises(DataError, match="column price is string, and was bigint") as caught:
        kept.sql(f"APPEND SKETCH dear FROM '{text}'")
    assert caught.value.code == "SKIMQL_OTHER_TYPE"
    with pytest.raises(UnknownName, match="has no column price"):
        kept.sql(f"APPEND SKETCH dear FROM '{write(home / 'bare.parquet', oid=[1])}'")
    more = write(home / "more.parquet", oid=[1], price=[8])
    kept.sql("CREATE SKETCH early ON lines (oid CLASS id) WHERE hour(timestamp_seconds(price)) < 3")
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        with pytest.raises(UnsupportedQuery, match="timeZone is Asia/Tokyo and was") as caught:
            kept.sql(f"APPEND SKETCH early FROM '{more}'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert caught.value.code == "SKIMQL_OTHER_DEFINITION"
    kept.sql(f"APPEND SKETCH early FROM '{more}'")


def test_values_that_add_up_to_more_than_a_double_are_told(kept, home):
    kept.table("vast", write(home / "vast.parquet", k=[1, 2], g=["a", "b"], x=[1e308, 1e308]))
    kept.table("one", write(home / "one.parquet", k=[1], g=["a"], x=[1e308]))
    kept.sql("CREATE SKETCH s_one ON one (k) FOR SUM(x)")
    kept.sql("CREATE SKETCH s_group ON one (k) FOR SUM(x) GROUP BY g")
    other = write(home / "other.parquet", k=[2], g=["b"], x=[1e308])
    for statement in (
        "CREATE SKETCH s_vast ON vast (k) FOR SUM(x) GROUP BY g",
        f"APPEND SKETCH s_one FROM '{other}'",
        f"APPEND SKETCH s_group FROM '{other}'",
    ):
        with pytest.raises(DataError, match="add up to more than a DOUBLE holds") as caught:
            kept.sql(statement)
        assert caught.value.code == "SKIMQL_NOT_FINITE"


def test_refresh_says_what_changed_in_the_schema(kept, home):
    write(home / "orders.parquet", id=[1, 2, 3, 4, 5], status=[1, 2, 3, 4, 5], extra=["x"] * 5)
    done = kept.sql("REFRESH SKETCH s_orders")
    assert done.notes == (
        "orders has changed: column extra (string) is new",
        "orders has changed: column status was string and is bigint",
    )
    assert kept.sql("SHOW SKETCHES").records()[1]["tuples"] == 5
    write(home / "orders.parquet", key=[1])
    with pytest.raises(DataError, match=r"column id \(bigint\) is gone") as caught:
        kept.sql("REFRESH SKETCH s_orders")
    assert caught.value.code == "SKIMQL_SCHEMA_CHANGED"
    assert kept.catalog.load("s_orders").head.tuples == 5, "the sketch is as it was"


def test_a_sketch_travels_as_a_file(kept, home, spark):
    path = home / "out.parquet"
    kept.sql(f"EXPORT SKETCH s_lines TO '{path}'")
    kept.sql(f"EXPORT SKETCH s_orders TO '{home}/o.parquet'")
    with pytest.raises(DataError, match="already"):
        kept.sql(f"EXPORT SKETCH s_lines TO '{path}'")
    with pytest.raises(DataError, match="cannot be written"):
        kept.sql(f"EXPORT SKETCH s_lines TO '{home}/nosuch/x.parquet'")
    elsewhere = Session(spark, catalog=home / "elsewhere")
    elsewhere.sql(f"IMPORT SKETCH mine FROM '{path}'")
    elsewhere.sql(f"IMPORT SKETCH `o o` FROM '{home.as_uri()}/o.parquet'")
    assert elsewhere.sql(COUNT).value == 3
    with pytest.raises(UnsupportedQuery, match="already"):
        elsewhere.sql(f"IMPORT SKETCH MINE FROM '{path}'")
    with pytest.raises(DataError, match="no file"):
        elsewhere.sql("IMPORT SKETCH x FROM 'nosuch'")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SkimqlError, match=r"out.parquet") as caught:
        elsewhere.sql(f"IMPORT SKETCH x FROM '{path}'")
    assert caught.value.code == "SKIMQL_CORRUPT_SKETCH"


def test_names_are_taken_replaced_and_dropped(kept):
    with pytest.raises(UnsupportedQuery, match="already") as caught:
        kept.sql("CREATE SKETCH S_ORDERS ON orders (id)")
    assert caught.value.code == "SKIMQL_SKETCHES_EXIST"
    assert "already" in kept.sql("CREATE SKETCH IF NOT EXISTS s_orders ON orders (id)").notes[0]
    kept.sql("DROP SKETCH s_orders")
    kept.sql("DROP SKETCH IF EXISTS s_orders")
    with pytest.raises(UnknownName, match="no sketch s_orders") as caught:
        kept.sql("DROP SKETCH s_orders")
    assert caught.value.hint == "s_lines"
    for statement in (
        "APPEND SKETCH x FROM orders",
        "REFRESH SKETCH x",
        "DESCRIBE SKETCH x",
        "EXPORT SKETCH x TO 'y'",
    ):
        with pytest.raises(UnknownName, match="no sketch x"):
            kept.sql(statement)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE SKETCH x ON orders (id) WHERE id > year(current_date())", "SKIMQL_UNSTABLE"),
        ("CREATE SKETCH x ON orders (id) WHERE id IN (SELECT oid FROM lines)", "SKIMQL_UNSTABLE"),
        ("CREATE SKETCH x ON orders (id, status) USING key_sample", "SKIMQL_UNKNOWN_METHOD"),
        ("CREATE SKETCH x ON lines (oid, price) USING hash", "SKIMQL_UNKNOWN_METHOD"),
        ("CREATE SKETCH x ON orders (nosuch)", "SKIMQL_UNKNOWN_COLUMN"),
        ("CREATE SKETCH x ON nosuch (id)", "SKIMQL_UNKNOWN_TABLE"),
        ("CREATE SKETCH x ON orders (id) SIZE 10", "SKIMQL_BUDGET_EXCEEDED"),
        ("CREATE SKETCH x ON orders (id) OPTIONS (nosuch = 1)", "SKIMQL_BAD_SETTING"),
        ("CREATE SKETCH x ON orders (array(id))", "SKIMQL_INCOMPARABLE_KEYS"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(kept, statement, code):
    with pytest.raises(SkimqlError) as caught:
        kept.sql(statement)
    assert caught.value.code == code
    assert kept.catalog.entry("x") is None


def test_sizes_filters_and_several_keys(kept):
    sized = kept.sql(
        "CREATE SKETCH x ON lines (oid, price) FOR SUM(price) WHERE price > 15 SIZE 64 KB"
    ).records()[0]
    assert (sized["method"], sized["tuples"], sized["filter"]) == ("convolution", 3, "price > 15")
    assert 0.98 * 65536 < 3 * 8 * sized["rows"] * sized["buckets"] <= 65536
    narrow = kept.sql("CREATE SKETCH y ON orders (id) ERROR WITHIN 1% CONFIDENCE 99%").records()[0]
    wide = kept.sql("CREATE SKETCH z ON orders (id) ERROR WITHIN 10%").records()[0]
    # A size that is larger than asked is that of the first sketch of the class, which it joins so.
    assert narrow["buckets"] > 4 * wide["buckets"] >= 4096


def test_expressions_as_keys_are_found_again(kept, scans):
    kept.sql("CREATE SKETCH e1 ON orders (upper(status) CLASS st)")
    kept.sql("CREATE SKETCH e2 ON lines (concat('', IF(price > 15, 'F', 'O')) CLASS st)")
    scans.clear()
    sql = "SELECT APPROXIMATE COUNT(*) FROM orders o JOIN lines l ON upper(o.status) = concat('', IF(l.price > 15, 'F', 'O'))"
    assert kept.sql(sql).value == 8
    assert scans == []


def test_the_name_of_a_table_that_is_another_now_is_not_answered_from_old_sketches(kept, home, scans):
    session = again(kept, home)
    session.table("orders", write(home / "other.parquet", id=[1]))
    assert session.sql(COUNT).value == 2
    assert scans == ["orders"]


def test_tables_of_the_catalog_are_there_for_spark_too(kept, home):
    kept.spark.catalog.dropTempView("orders")
    session = again(kept, home)
    assert session.sql("SELECT COUNT(*) FROM orders").collect()[0][0] == 4
    kept.spark.catalog.dropTempView("lines")
    assert again(kept, home).sql(COUNT.replace("SELECT APPROXIMATE", "EXACT SELECT")).value == 3


def test_sketches_for_many_queries_are_kept_with_their_plans(kept, home, scans):
    other = "SELECT SUM(l.price) AS s FROM orders o JOIN lines l ON o.id = l.oid WHERE o.status = 'F'"
    told = kept.sql(
        f"CREATE SKETCHES w FOR QUERIES ({COUNT.replace('APPROXIMATE ', '')}; {other}) SIZE 1 MB MINIMIZE AVERAGE ERROR"
    )
    scans.clear()
    session = again(kept, home)
    answer = session.sql(other.replace("SELECT", "SELECT APPROXIMATE"))
    assert (answer.value, scans) == (30, [])
    assert answer.notes[0].startswith("from the sketches w, as of")
    # The age of the statistics is told beside.
    assert session.sql("EXPLAIN SKETCHES w").value.startswith(told.value)
    members = [r["sketch"] for r in session.sql("SHOW SKETCHES").records() if r["sketch"].startswith("w.")]
    assert len(members) >= 2
    with pytest.raises(UnsupportedQuery, match="kept together"):
        session.sql("DROP SKETCH `w.0`")
    session.sql("DROP SKETCH w")
    assert [r["sketch"] for r in session.sql("SHOW SKETCHES").records()] == ["s_lines", "s_orders"]


def test_what_is_appended_and_deleted_again_leaves_the_same_arrays(kept, home):
    """Bit for bit, of counters, of every key, by groups, and with weights of DECIMAL; and a change is taken once."""
    more = write(home / "more.parquet", oid=[1, 5, 5, None], price=[7, 8, 9, 1], op=["d", "i", "i", "d"])
    for clauses in (
        "OPTIONS (sparse = false, buckets = 64)",
        "GROUP BY price USING key_sample",
        "USING skimmed",
    ):
        kept.sql(
            f"CREATE OR REPLACE SKETCH x ON lines (oid CLASS x) FOR SUM(CAST(price AS DECIMAL(9,2))) {clauses}"
        )
        before = kept.catalog.load("x")
        kept.sql(f"APPEND SKETCH x FROM '{more}'")
        with pytest.raises(UnsupportedQuery, match="already has"):
            kept.sql(f"APPEND SKETCH x FROM '{more}'")
        assert kept.sql("SHOW SKETCHES LIKE 'x'").records()[0]["tuples"] == 4 + 3
        deleted = "DELETES WHEN true" if "GROUP" in clauses else "WEIGHT (-1)"
        assert kept.sql(f"APPEND SKETCH x FROM '{more}' {deleted}").notes == ("3 tuples deleted",)
        after, arrays = kept.catalog.load("x"), before.head.kind.arrays
        for old, new in zip(before.groups, after.groups, strict=False):
            for a, b in zip(old, new, strict=True):
                mine, now = arrays(a.sketch), arrays(b.sketch)
                assert all((mine[n] == now[n]).all() for n in mine if n != "unseen")
    done = kept.sql(f"APPEND SKETCH x FROM '{more}' WHERE oid > 0 DELETES WHEN op = 'd' AND price > 0")
    assert done.notes[0] == "1 tuples added"
    for wrong, code in (
        ("WEIGHT price + 0.5", "SKIMQL_WEIGHT_TYPE"),
        ("WEIGHT nosuch", "SKIMQL_UNKNOWN_COLUMN"),
    ):
        with pytest.raises(SkimqlError) as caught:
            kept.sql(f"APPEND SKETCH x FROM '{more}' {wrong}")
        assert caught.value.code == code


def test_sketches_of_one_definition_are_merged_and_others_refused(kept, home):
    kept.table("rest", write(home / "rest.parquet", oid=[1, 2], price=[1, 2]))
    kept.sql("CREATE SKETCH rest ON rest (oid CLASS id) FOR SUM(price)")
    kept.sql("CREATE SKETCH counts ON rest (oid CLASS id)")
    assert kept.sql("APPEND SKETCH s_lines FROM SKETCH rest").notes == ("2 tuples of sketch rest added",)
    assert kept.sql(COUNT).value == 5
    for other, code, why in (
        ("rest", "SKIMQL_ALREADY_APPENDED", "both have"),
        ("counts", "SKIMQL_OTHER_DEFINITION", "other weights"),
        ("nosuch", "SKIMQL_UNKNOWN_NAME", "no sketch nosuch"),
    ):
        with pytest.raises(SkimqlError, match=why) as caught:
            kept.sql(f"APPEND SKETCH s_lines FROM SKETCH {other}")
        assert caught.value.code == code
    kept.sql("REFRESH SKETCH s_lines")
    assert kept.sql(COUNT).value == 5, "the table, and what was merged in, once each"


def test_later_sketches_of_a_class_are_as_the_first_and_the_first_as_predicted(kept):
    first = kept.sql("CREATE SKETCH x ON lines (oid CLASS x) SIZE 8 KB")
    assert "predicted to be best" in first.notes[0]
    assert first.records()[0]["bytes"] <= 8192
    second = kept.sql("CREATE SKETCH y ON orders (id CLASS x)")
    assert second.notes[0].startswith("as sketch x, the first of its class")
    assert [first.records()[0][c] for c in ("method", "seed", "rows", "buckets")] == [
        second.records()[0][c] for c in ("method", "seed", "rows", "buckets")
    ]
    asked = kept.sql("CREATE SKETCH z ON orders (id CLASS x) USING agms SIZE 8 KB OPTIONS (seed = 5)")
    assert asked.records()[0]["method"] == "agms"
    assert "by another method" in asked.notes[0]
    assert "it is not joined with x (" in asked.notes[1]


def test_a_sketch_follows_the_first_of_its_class_where_that_is_within_what_is_asked(kept):
    """Its width and its dense keys, SIZE and ERROR being met; where they are not, the statement says what is not joined."""
    first = kept.sql("CREATE SKETCH x ON lines (oid CLASS x) USING hash SIZE 64 KB").records()[0]

    def made(rest):
        answer = kept.sql(f"CREATE OR REPLACE SKETCH y ON orders (id CLASS x) {rest}")
        row = answer.records()[0]
        return (row["rows"], row["buckets"]) == (first["rows"], first["buckets"]), answer.notes

    for rest in ("SIZE 64 KB", "SIZE 1 MB", "USING hash SIZE 64 KB", "ERROR WITHIN 50%", ""):
        like, notes = made(rest)
        assert like, rest
        assert notes[0].startswith("as sketch x, the first of its class"), rest
        assert not any("not joined" in n for n in notes), rest
    for rest in ("SIZE 32 KB", "ERROR WITHIN 1%", "OPTIONS (buckets = 16)", "USING hash OPTIONS (seed = 9)"):
        like, notes = made(rest)
        why = "x (seed 1)" if "seed" in rest else f"x ({first['rows']} rows x {first['buckets']:,} buckets)"
        assert f"as counters it is not joined with {why} of its class" in notes, rest
        assert "seed" in rest or not like


def test_groups_are_kept_described_and_answered_as_spark_has_them(kept, home, scans):
    kept.sql("CREATE SKETCH x ON orders (id CLASS id) GROUP BY status")
    assert ("GROUP BY", "status, 2 groups") in kept.sql("DESCRIBE SKETCH x").rows
    scans.clear()
    query = "SELECT APPROXIMATE o.status, COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l ON o.id = l.oid GROUP BY o.status"
    answer = again(kept, home).sql(query)
    assert [(r[0], r[1].value, r[2].value) for r in answer.rows] == [("F", 2, 30), ("O", 1, 30)]
    assert scans == []
    with pytest.raises(SkimqlError) as caught:
        kept.sql("CREATE SKETCH y ON orders (id) GROUP BY array(status)")
    assert caught.value.code == "SKIMQL_GROUP_TYPE"


def test_without_a_catalog_sketches_live_as_long_as_the_session(session):
    session.table("t", session.spark.createDataFrame(pa.table({"k": [1, 1, 2]})))
    session.sql("CREATE SKETCH s ON t (k)")
    sql = "SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k"
    assert session.sql(sql).value == 5
    assert "from the kept sketch s" in session.sql(sql).notes[0]
    with pytest.raises(UnsupportedQuery, match="already has t"):
        session.sql("APPEND SKETCH s FROM t")
    session.table("t", session.spark.createDataFrame(pa.table({"k": [1]})))
    assert session.sql(sql).value == 1
    assert session.sql("SHOW SKETCHES").rows == ()

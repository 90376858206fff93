"""IMPORT believes nothing that its file says: types, sizes, expressions, paths and names are checked before use."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kept import kept, remember

from skimql import BudgetExceeded, CorruptSketch, DataError, Session, SkimqlError, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import canonical, digest, encode
from skimql.engine.catalog.footer import read_footer
from skimql.engine.catalog.form import Lineage, LineageFile
from skimql.engine.spark.own import OwnSpark
from skimql.errors import printable
from skimql.optimizer.plan import Attribute, Weight
from skimql.parser.foreign import refuse_foreign, refuse_foreign_type

HONEST = kept("s", "t", {"k": [1, 2, 2]}, rows=3, buckets=8, condition="`k` > 0 AND upper(`x`) IN ('A', 'B')")
DOUBLES = kept(
    "s", "t", {"k": [1, 2, 2]}, summed=("v", [0.5, -1.5, 0.25]), dtype="float64", rows=3, buckets=8
)


@pytest.fixture
def importing(tmp_path, monkeypatch):
    """Imports a sketch or bytes into a session without Spark; its session."""
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)

    def imported(what, words=""):
        path = tmp_path / "in.parquet"
        path.write_bytes(what if isinstance(what, bytes) else encode(what))
        session = Session()
        session.answer = session.sql(f"IMPORT SKETCH s FROM '{path}' {words}")
        return session

    return imported


def with_head(sketch, **changes):
    return replace(sketch, head=replace(sketch.head, **changes))


def crafted(sketch, head=None, listed=None, table=None, raw=None):
    """The file of a sketch with other metadata or pages, the checksum of the metadata right."""
    data = encode(sketch)
    file = pq.ParquetFile(pa.BufferReader(data))
    metadata = dict(file.metadata.metadata)
    told = canonical(head(json.loads(metadata[b"skimql"]))) if head else metadata[b"skimql"]
    told = raw or told
    arrays = (
        canonical(listed(json.loads(metadata[b"skimql.arrays"]))) if listed else metadata[b"skimql.arrays"]
    )
    content = file.read() if table is None else table(file.read())
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, content.schema, compression="zstd") as writer:
        writer.write_table(content)
        writer.add_key_value_metadata(
            {b"skimql": told, b"skimql.arrays": arrays, b"skimql.sha256": digest(told + arrays).encode()}
        )
    return bytes(sink.getvalue())


def test_an_honest_file_comes_in_and_answers(importing):
    session = importing(HONEST)
    assert session.catalog.load("s").head.filter == HONEST.head.filter
    assert importing(DOUBLES).sql("SELECT APPROXIMATE SUM(a.v) FROM t a JOIN t b ON a.k = b.k").value == -2.0


# What each expression does, and whether it is let in.
FOREIGN = [
    "java_method('java.lang.System', 'getProperty', 'user.home') = `k`",
    "reflect('java.lang.System', 'exit', 1) = `k`",
    "try_reflect('java.lang.System', 'exit', 1) = `k`",
    "REFLECT ('java.lang.System', 'exit', 1) = `k`",
    "`reflect`('java.lang.System', 'exit', 1) = `k`",
    "system.builtin.reflect('java.lang.System', 'exit', 1) = `k`",
    "`k` = reflect/**/('java.lang.System', 'exit', 1)",
    "`k` > 1 /* quiet */",
    "`x` = 'a\\' || reflect(1) || \\''",
    "`k` IN (SELECT 1)",
    "EXISTS (SELECT 1 FROM secrets)",
    "(SELECT max(p) FROM secrets) = `k`",
    "my_udf(`k`) > 1",
    "default.my_udf(`k`) > 1",
    "rand() < 0.5",
    "`k` < uuid()",
    "`d` < current_date()",
    "`u` = current_user()",
    "input_file_name() = `x`",
    "from_protobuf(`x`, 'm', '/etc/passwd') IS NULL",
    "explode(`a`) = 1",
    "`k` > :p",
    "`k` > ?",
    "row_number() OVER (ORDER BY `k`) = 1",
    "raise_error('x') IS NULL",
    "1 = 1; DROP TABLE t",
    "(" * 3000 + "`k`" + ")" * 3000 + " > 1",
    "`k` > 1 OR " * 3000 + "`k` > 2",
]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *((text, "filter") for text in FOREIGN),
        *((text, place) for text in FOREIGN[::9] for place in ("key", "weight", "condition")),
    ],
    ids=lambda t: t[:40],
)
def test_an_expression_that_does_more_than_compute_is_refused_wherever_it_stands(text, place, importing):
    head = DOUBLES.head
    match place:
        case "filter":
            changes = {"filter": text}
        case "key":
            changes = {"attributes": (Attribute((text,), ("bigint",), "k"),)}
        case "weight":
            weights = (Weight(), Weight(text), Weight(text, presence=True))
            changes = {
                "measures": tuple(replace(m, weight=w) for m, w in zip(head.measures, weights, strict=True))
            }
        case _:
            changes = {"lineage": (Lineage("t", True, text, (), None, "2026-11-28T00:00:00Z"),)}
    with pytest.raises(UnsupportedQuery) as caught:
        importing(with_head(DOUBLES, **changes))
    assert caught.value.code in ("SKIMQL_FOREIGN_EXPRESSION", "SKIMQL_UNSTABLE")
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "text",
    [
        "`status` = 'F' AND NOT (`v` + 1) * 2 > -3",
        "CAST(`a` AS DECIMAL(10, 2)) BETWEEN 1 AND 2 OR `b` IS NULL",
        "CASE WHEN (`a` = 1) THEN (`b`) ELSE (`c`) END",
        "`d` >= DATE '2026-01-01' AND date_add(`d`, 3) < TIMESTAMP '2026-01-01 00:00:00'",
        "substring(`s`, 1, 3) LIKE 'a--b%' OR `s` RLIKE '^v[0-9]+'",
        "exists(`a`, x -> x > 1) OR `a`[0] = 1 OR `st`.`f` = 2",
        "coalesce(`a`, `b`, 0) = greatest(`c`, 1) AND hash(`x`) % 3 = 0",
    ],
)
def test_expressions_that_compute_are_let_in(text):
    refuse_foreign(text)


@pytest.mark.parametrize("name", ["bigint) = 1 OR (1", "int; x", "", "reflect('a')", "in t(", "string\n"])
def test_types_are_names_of_types(name):
    with pytest.raises(UnsupportedQuery):
        refuse_foreign_type(name)
    for good in (
        "bigint",
        "decimal(38,18)",
        "timestamp_ntz",
        "string collate UTF8_LCASE",
        "char(3)",
        "double",
    ):
        refuse_foreign_type(good)


EATEN = (
    Lineage(
        "/evil/t.parquet", True, None, (LineageFile("/evil/t.parquet", 1, 2),), None, "2026-11-28T00:00:00Z"
    ),
    Lineage(
        "/evil/more", False, None, (LineageFile("/evil/more/a.parquet", 1, 2),), None, "2026-11-28T00:00:00Z"
    ),
)


def test_paths_of_the_file_are_shown_and_neither_read_nor_looked_at_before_trust(importing, monkeypatch):
    looked = []
    honest = os.stat
    monkeypatch.setattr(os, "stat", lambda p, *a, **k: looked.append(str(p)) or honest(p, *a, **k))
    session = importing(with_head(HONEST, filter=None, lineage=EATEN))
    assert session.answer.notes == (
        "it says that it is made of table /evil/t.parquet, path /evil/more; none of it is read before IMPORT ... TRUSTED",
    )
    answer = session.sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k")
    assert answer.value == 5
    for statement in ("REFRESH SKETCH s", "APPEND SKETCH s FROM t", "APPEND SKETCH s FROM '/mine.parquet'"):
        with pytest.raises(
            UnsupportedQuery, match=r"says that it is made of /evil/t\.parquet, /evil/more"
        ) as caught:
            session.sql(statement)
        assert caught.value.code == "SKIMQL_NOT_TRUSTED"
    assert not [p for p in looked if "evil" in p]
    for statement in caught.value.hint.split("; "):  # the way out, typed
        session.sql(statement)
    assert session.catalog.load("s").head.imported_from == ""


def test_refresh_of_an_import_works_once_it_is_trusted(tmp_path, session):
    spark = session.spark
    first, path = Session(spark, catalog=tmp_path / "c"), tmp_path / "s.parquet"
    (tmp_path / "t.csv").write_text("k\n1\n2\n2\n")
    for one in (first, second := Session(spark, catalog=tmp_path / "d")):
        one.table("t", tmp_path / "t.csv")
    first.sql("CREATE SKETCH s ON t (k)")
    first.sql(f"EXPORT SKETCH s TO '{path}'")
    second.sql(f"IMPORT SKETCH s FROM '{path}'")
    with pytest.raises(UnsupportedQuery, match="without TRUSTED") as caught:
        second.sql("REFRESH SKETCH s")
    for statement in caught.value.hint.split("; "):
        second.sql(statement)
    assert second.sql("REFRESH SKETCH s").records()[0]["tuples"] == 3
    # A path that the user has given himself is looked at, trusted or not.
    second.sql(f"IMPORT SKETCH r FROM '{path}'")
    second.sql("DROP SKETCH s")
    (tmp_path / "t.csv").write_text("k\n1\n2\n2\n2\n")
    second.table("t", tmp_path / "t.csv")
    answer = second.sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k")
    assert "since then 1 changed file" in " ".join(answer.notes)
    assert not answer.records()[0]["certified"]


def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def listed_zeros(count):
    zeros = np.zeros(count, dtype=np.int64)
    return lambda known: {
        **known,
        "0.weights": {"dtype": "int64", "shape": [count], "sha256": digest(zeros.tobytes())},
    }


@pytest.mark.parametrize("count", [10**6, 10**7])
@pytest.mark.parametrize("declared", [True, False])
def test_zeros_that_compress_to_nothing_are_not_unpacked(count, declared, importing):
    """32 KB once took a minute and 2 GB to be refused."""

    def table(honest):
        values = pa.array(np.zeros(count, dtype=np.int64))
        column = pa.ListArray.from_arrays(pa.array([0, *[count] * honest.num_rows], pa.int32()), values)
        return honest.set_column(2, "integers", column)

    before = grown()
    data = crafted(HONEST, listed=listed_zeros(count) if declared else None, table=table)
    used = grown()
    with pytest.raises(CorruptSketch):
        importing(data)
    assert grown() - max(before, used) < 60 * 1024


def test_pages_that_are_larger_than_the_footer_says_are_not_unpacked():
    """The sizes in page headers are read too: pyarrow takes memory for whatever they say."""
    data = bytearray(encode(HONEST))
    footer = read_footer(bytes(data), 4)
    assert [c.column for c in footer.chunks] == [0, 1, 2, 3]
    # The first page header begins at 4: a struct whose second field is the unpacked size, here made 2^31 - 1.
    end = 4 + 2
    assert data[4] == 0x15
    assert data[end] == 0x15
    for size in (b"\xfe\xff\xff\xff\x0f", b"\x01"):
        longer = bytes(data[: end + 1]) + size + bytes(data[end + 2 :])
        try:
            found = read_footer(longer, 4)
        except ValueError:
            continue
        assert found.chunks[0].uncompressed >= 2**31 - 1


HUGE = {
    "buckets": lambda h: {**h, "buckets": 11 * 10**9},
    "buckets within bounds": lambda h: {**h, "buckets": 1 << 26},
    "rows": lambda h: {**h, "rows": 10**12},
    "rows times buckets": lambda h: {**h, "rows": 60_000, "buckets": 1 << 20},
    "limit": lambda h: {**h, "limit_bytes": 1 << 70},
}


@pytest.mark.parametrize("change", HUGE)
def test_a_small_map_that_would_be_huge_as_counters_is_refused(change, importing):
    with pytest.raises((BudgetExceeded, CorruptSketch)) as caught:
        importing(crafted(HONEST, head=HUGE[change]))
    assert caught.value.code in ("SKIMQL_MAX_BYTES", "SKIMQL_CORRUPT_SKETCH")


def test_a_sketch_above_max_bytes_is_refused_by_name_and_taken_with_more(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    (tmp_path / "s.parquet").write_bytes(encode(kept("s", "t", {"k": [1]}, rows=3, buckets=1 << 12)))
    session = Session(max_bytes=50_000)
    with pytest.raises(BudgetExceeded, match=r"made counters, takes 98,304 bytes, and 50,000 are allowed"):
        session.sql(f"IMPORT SKETCH s FROM '{tmp_path}/s.parquet'")
    session.sql("SET skimql.max_bytes = 100000")
    session.sql(f"IMPORT SKETCH s FROM '{tmp_path}/s.parquet'")


WRONG = {
    "deep": b'{"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "NaN": canonical({"kind": 1}).replace(b"1", b"NaN"),
    "infinite": b'{"kind": 1e999}',
    "digits": b'{"kind": ' + b"9" * 10_000 + b"}",
    "twice": b'{"kind": "skimql sketch", "kind": "skimql sketch"}',
    "no UTF-8": b'{"kind": "\xff"}',
    "no object": b"[1]",
}


@pytest.mark.parametrize("raw", WRONG)
def test_metadata_that_are_no_json_of_ours_are_refused(raw, importing):
    with pytest.raises(CorruptSketch, match="metadata"):
        importing(crafted(HONEST, raw=WRONG[raw]))


VALUES = [None, True, 0, -1, 1 << 63, 10**30, 1.5, -1e308, "", "x", [], [None], {}, {"a": 1}, "\x1b[2J"]


def paths(value, at=()):
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, found in inner:
        yield from paths(found, (*at, key))


def changed(value, at, new):
    if not at:
        return new
    if isinstance(value, dict):
        return {k: changed(v, at[1:], new) if k == at[0] else v for k, v in value.items()}
    return [changed(v, at[1:], new) if i == at[0] else v for i, v in enumerate(value)]


def test_a_value_of_another_type_anywhere_ends_in_an_error_of_ours_or_in_a_whole_sketch(importing):
    """Each place of the head and of the list of arrays, with values of every type."""
    sketch = with_head(DOUBLES, lineage=EATEN, cell=(1,))
    file = pq.ParquetFile(pa.BufferReader(encode(sketch))).metadata.metadata
    draw = random.Random(7)
    for part, key in (("head", b"skimql"), ("listed", b"skimql.arrays")):
        whole = json.loads(file[key])
        for at in paths(whole):
            for new in draw.sample(VALUES, 2):
                data = crafted(sketch, **{part: lambda value, a=at, n=new: changed(value, a, n)})
                with contextlib.suppress(SkimqlError):
                    session = importing(data)
                    session.sql("SHOW SKETCHES")
                    session.sql("DESCRIBE SKETCH EXTENDED s")
                    for built in session.catalog.load("s").built:
                        built.linear.dense()


@pytest.mark.parametrize("values", [[float("nan"), 1.0], [float("inf"), 1.0], [0.0, 1.0]])
def test_values_that_no_sum_has_are_refused(values, importing):
    array = np.array(values)
    sha = digest(array.tobytes())

    def table(honest):
        names = honest["array"].to_pylist()
        rows = [
            values if n == "1.weights" else r
            for n, r in zip(names, honest["doubles"].to_pylist(), strict=True)
        ]
        return honest.set_column(3, "doubles", pa.array(rows, pa.list_(pa.float64())))

    with pytest.raises(CorruptSketch):
        importing(
            crafted(DOUBLES, listed=lambda known: changed(known, ("1.weights", "sha256"), sha), table=table)
        )


def test_what_is_no_regular_file_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "to zero").symlink_to("/dev/zero")
    with (tmp_path / "large").open("wb") as sink:
        sink.truncate(1 << 40)
    session = Session()
    places = ["pipe", "folder", "loop", "to zero", "large"]
    for path in [
        *(str(tmp_path / p) for p in places),
        "/dev/zero",
        "/dev/null",
        "/dev/random",
        "/proc/self/mem",
        "~nosuch/x",
        "a\x00b",
        "x" * 5000,
        "",
        "/",
    ]:
        with pytest.raises(SkimqlError) as caught:
            session.sql(f"IMPORT SKETCH s FROM '{path}'")
        assert caught.value.code in (
            "SKIMQL_UNREADABLE_FILE",
            "SKIMQL_NO_SUCH_FILE",
            "SKIMQL_CORRUPT_SKETCH",
            "SKIMQL_PARSE_ERROR",
            "SKIMQL_BAD_PATH",
        ), path
    # The files of a catalog too.
    home = tmp_path / "c"
    remember(Catalog(home), HONEST)
    for file in (home / Catalog(home).entry("s").file, home / "catalog.json"):
        file.unlink()
        os.mkfifo(file)
    with pytest.raises(DataError, match="cannot be read: it is no regular file"):
        Catalog(home).heads()


def test_nothing_of_a_refused_file_is_stored(importing, tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    home = tmp_path / "c"
    remember(Catalog(home), kept("a", "u", {"k": [1]}, rows=3, buckets=8))
    before = Catalog(home).manifest
    (tmp_path / "bad.parquet").write_bytes(encode(with_head(HONEST, filter="my_udf(`k`)")))
    with pytest.raises(UnsupportedQuery):
        Session(catalog=home).sql(f"IMPORT SKETCH s FROM '{tmp_path}/bad.parquet'")
    assert Catalog(home).manifest == before


EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\r\x9b31m"


def test_names_from_files_act_on_no_terminal(importing):
    attributes = (Attribute(("`k`",), ("bigint",), "k" + EVIL),)
    session = importing(
        with_head(HONEST, filter=None, table="t" + EVIL, attributes=attributes, program=EVIL, created=EVIL[:20],
                  lineage=(Lineage("/x" + EVIL, False, None, (LineageFile("/y" + EVIL, 1, 2),), None, "2026"),))
    )  # fmt: skip
    shown = [session.answer, session.sql("SHOW SKETCHES"), session.sql("DESCRIBE SKETCH EXTENDED s")]
    for answer in shown:
        texts = [v for row in answer.rows for v in row if isinstance(v, str)] + list(answer.notes)
        assert all(t == printable(t) for t in texts), texts
    with pytest.raises(UnsupportedQuery) as caught:
        session.sql("REFRESH SKETCH s")
    assert "\\x1b" in str(caught.value)
    assert str(caught.value) == printable(str(caught.value))
    with pytest.raises(SkimqlError) as caught:
        importing(crafted(HONEST, head=lambda h: {**h, "method": EVIL, "kind": "skimql sketch"}))
    assert str(caught.value) == printable(str(caught.value))


def test_printable_leaves_what_can_be_shown():
    for text in ("größe", "日本", "a\nb\tc", "é", "🙂", "±5 %"):
        assert printable(text) == text
    assert printable("\x00\x7f\u2028\ud800\u202e") == "\\x00\\x7f\\u2028\\ud800\\u202e"


def test_the_study_of_crafted_files_finds_nothing_in_a_few_hundred(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    from benchmarks.faults.files import run

    tally = run(80, 11, tmp_path)
    assert (tally.tries, tally.faults) == (80, 0), tally


@pytest.mark.parametrize("scale", [0, 5e-324, 1e-19, 1e19, 1e308, -1.0])
def test_scales_are_those_of_decimals(scale, importing):
    """Products of the scales of several tables must be finite, and not 0."""
    head = HONEST.head
    with pytest.raises(CorruptSketch, match="scale"):
        importing(crafted(HONEST, head=lambda h: {**h, "measures": [{**h["measures"][0], "scale": scale}]}))
    decimals = replace(head, measures=(replace(head.measures[0], scale=100.0),))
    assert importing(replace(HONEST, head=decimals)).catalog.load("s").built[0].scale == 100.0

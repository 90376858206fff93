"""Queries and the catalog, without Spark."""

from dataclasses import replace

import pytest
from support.kept import kept, remember

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.lookup import MaterializedLookup, asked_of
from skimql.engine.spark.own import OwnSpark
from skimql.parser.statement import parse_statement


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    sketches = kept("a", "x", {"id": [1, 2]}), kept("b", "y", {"id": [2, 2]})
    return Session(catalog=remember(Catalog(), *sketches))


def test_types_of_keys_are_known_from_the_sketches(found):
    assert MaterializedLookup(found.context).key_types() == {("x", "`id`"): "bigint", ("y", "`id`"): "bigint"}


def test_a_query_is_supplied_without_building(found):
    select = parse_statement("SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id")
    query = found.typed(found._resolved(select))
    lookup = MaterializedLookup(found.context)
    supply = lookup.supply(query, lookup.find(select, query, found.settings), found.settings)
    assert (list(supply.joined), len(supply.joined[()].built), supply.stale) == ([()], 2, False)
    assert lookup.plan(select, query, found.settings).missing == ()


JOIN = "SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id"


def test_the_catalog_is_searched_once_for_a_stored_query(found, monkeypatch):
    asked, answers = [], MaterializedLookup.answers
    monkeypatch.setattr(MaterializedLookup, "answers", lambda *a: asked.append(a) or answers(*a))
    assert found.sql(JOIN).value == 2
    assert len(asked) == 1


def _passed_over(session):
    select = parse_statement(JOIN)
    query = session.typed(session._resolved(select))
    lookup = MaterializedLookup(session.context)
    assert lookup.find(select, query, session.settings) is None
    return lookup.passed_over(select, query, session.settings)


def test_what_may_not_be_loaded_is_not_used(found):
    """Neither refused nor loaded: planned anew, with a note."""
    found.sql("SET skimql.max_bytes = 4 KB")
    (*_, note) = _passed_over(found)
    assert note == "sketch b is not used: it may take 5,632 bytes, more than skimql.max_bytes = 4,096"


def test_what_a_newer_version_has_written_is_not_used(found, monkeypatch):
    entries = {
        n: replace(e, head=None, metadata={**e.metadata, "format_version": 9})
        for n, e in found.catalog.manifest.sketches.items()
    }
    newer = replace(found.catalog.manifest, sketches=entries)
    monkeypatch.setattr(Catalog, "manifest", property(lambda self: newer))
    assert _passed_over(found) == tuple(f"sketch {n} is not used: a newer SkimQL wrote it" for n in "ab")


def test_a_statement_fixes_what_it_names():
    asked = asked_of(parse_statement("SELECT APPROXIMATE COUNT(*) FROM x USING hash SEED 9"))
    assert asked != asked_of(parse_statement("SELECT APPROXIMATE COUNT(*) FROM x"))


def _workload(*, classes=("id", "id"), **changes):
    """Three sketches of a workload: counts and sums of x apart, of other rows than y has, and a part of a domain."""
    values = [4, 5, 6]
    both = kept(
        "w", "x", {"id": [1, 2, 2]}, summed=("v", values), classes=classes[:1], rows=9, group="w", **changes
    )
    one, two = (
        replace(
            both,
            head=replace(both.head, name=f"w.{n}", measures=(both.head.measures[m],)),
            built=(both.built[m],),
        )
        for n, m in ((0, 0), (2, 1))
    )
    presence = replace(
        both,
        head=replace(both.head, name="w.4", measures=(both.head.measures[2],)),
        built=(both.built[2],),
    )
    other = kept("w.1", "y", {"id": [2, 2, 3]}, classes=classes[1:], rows=5, group="w", **changes)
    cell = kept("w.3", "x", {"id": [7]}, classes=classes[:1], group="w", cell=(1,))
    return one, two, presence, other, cell


@pytest.fixture
def workload(monkeypatch):
    """A session on sketches of a workload for which asking for Spark fails the test."""

    def make(**changes):
        monkeypatch.setattr(OwnSpark, "running", lambda self: None)
        monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
        return Session(catalog=remember(Catalog(), *_workload(**changes)), error=None)

    return make


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    ("question", "truth"),
    [
        ("COUNT(*) FROM x JOIN y ON x.id = y.id", 4),
        ("SUM(x.v) FROM x JOIN y ON x.id = y.id", 22),
        ("AVG(x.v) FROM x JOIN y ON x.id = y.id", 5.5),
        ("COUNT(*) FROM x a JOIN x b ON a.id = b.id", 5),
        ("COUNT(x.v) FROM x JOIN y ON x.id = y.id HAVING COUNT(*) > 0", 4),
    ],
)
def test_sketches_of_a_workload_answer_other_questions_than_its_own(workload, question, truth, sparse):
    session = workload(sparse=sparse)
    answer = session.sql(f"SELECT APPROXIMATE {question}")
    assert float(answer.value) == pytest.approx(truth)
    assert "of the sketches w" in answer.notes[0]
    assert "of the sketches w" in session.sql(f"EXPLAIN SELECT APPROXIMATE {question}").value


@pytest.mark.parametrize(
    ("question", "changes"),
    [
        ("COUNT(*) FROM x JOIN y ON x.id = y.id WHERE x.v > 4", {}),
        ("COUNT(*) FROM x JOIN y ON x.id = y.id", {"classes": ("id", "other")}),
        ("SUM(x.v * x.v) FROM x JOIN y ON x.id = y.id", {}),
        ("COUNT(*) FROM x JOIN y ON x.id = y.id SIZE 100", {}),
    ],
    ids=["another filter", "other classes", "a weight that is not kept", "a smaller size"],
)
def test_sketches_of_a_workload_that_do_not_fit_are_not_used(workload, question, changes):
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        workload(**changes).sql(f"SELECT APPROXIMATE {question}")


def test_sketches_of_a_workload_of_other_sizes_are_no_fault_of_a_question(monkeypatch):
    """They are sized for the questions of their own: nobody has asked that they be joined with others."""
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
    *_, other, _ = _workload(sparse=False)
    own = kept("a", "x", {"id": [1, 2]}, buckets=32, sparse=False)
    session = Session(catalog=remember(Catalog(), own, other), error=None)
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        session.sql("SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id")


@pytest.mark.parametrize("sparse", [True, False])
def test_cells_of_a_workload_answer_other_questions_as_the_sketch_of_their_relation(monkeypatch, sparse):
    """Of several weights, numbers of rows and cells of two classes; without one of its cells a relation has no sketch."""
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
    changes = {"group": "w", "sparse": sparse, "buckets": 512}
    cells = []
    for n, own in enumerate(([1, 2], [2, 4], [1], [3, 3])):
        place, rows = divmod(n, 2), 7 + n
        keys = {"id": own, "j": [n] * len(own)}
        both = kept(f"w.{n}", "x", keys, summed=("v", own), rows=rows, cell=place, **changes)
        cells += [
            replace(both, head=replace(both.head, name=f"w.{n}{m}", measures=(both.head.measures[m],)), built=(both.built[m],))
            for m in range(3)
        ]  # fmt: skip
    cells += [
        kept(f"w.y{n}", "y", {"id": own}, cell=(n,), **changes) for n, own in enumerate(([1, 1], [2, 3]))
    ]
    cells += [kept("w.z", "z", {"j": [0, 0, 3]}, **changes)]
    ask = "SELECT APPROXIMATE COUNT(*) AS n, SUM(x.v) AS s FROM y JOIN x ON x.id = y.id JOIN z ON x.j = z.j"
    session = Session(catalog=remember(Catalog(), *cells), error=None)
    answer = session.sql(ask)
    # Keys 1 and 2 with j 0 twice each, 3 twice with j 3: 2 * 2 + 1 * 2 + 1 * 2 tuples.
    assert [float(c.value) for c in answer.rows[0]] == pytest.approx([8, 14])
    assert answer.rows[0][0].exact == sparse
    assert answer.notes[0].count(" of the sketches w") == 3
    assert "w.y0, w.y1 of the sketches w" in session.sql(f"EXPLAIN {ask}").value
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        Session(catalog=remember(Catalog(), *cells[3:]), error=None).sql(ask)

"""Ways out, typed and held against the exact answer to the user's question: one for each code, then random ones.

The random ones are EXISTS conditions and grouped values, whose errors print SQL of the user's own parts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path

from skimql import Answer, Session
from skimql.errors import SkimqlError

from .record import Tally
from .ways_out import BEFORE, TABLES, WAYS, Way

TRIES = 60

EXISTS = "EXISTS (SELECT {item} FROM b {alias} WHERE {conditions})"


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Type the ways out of every code, and of `tries` random statements that are refused."""
    tally, chosen = Tally("hints"), random.Random(seed)
    spark = Session().spark
    # What is refused here is asked of sketches of the default size: a target would have some of it run exactly.
    ways = WaysOut(Session(spark, error=None))
    for way in WAYS:
        with tally.trying(way.question[:200]):
            fault = ways.fault_of(way)
            tally.wrong += [f"{way.question[:200]}: {fault}"] if fault else []
    session = Session(spark, error=None)
    rows = [(chosen.choice([None, *range(6)]), chosen.randrange(9), chosen.choice("uvw")) for _ in range(40)]
    session.table("a", spark.createDataFrame(rows, "k INT, x INT, t STRING"))
    session.table("b", spark.createDataFrame([(k, x) for k, x, _ in rows[:15]], "m INT, y INT"))
    for _ in range(tries):
        text, place = _exists(chosen) if chosen.random() < 0.7 else _grouped(chosen)
        with tally.trying(text):
            try:
                session.sql(text)
            except SkimqlError as error:
                typed = text.replace(place, error.hint.split(", or ")[0])
            else:
                continue
            if "EXACT SELECT" in typed:
                continue
            answer, exact = session.sql(typed), session.sql(text.replace("APPROXIMATE", "")).collect()
            assert isinstance(answer, Answer)
            if sorted(_plain(answer.rows)) != sorted(_plain(exact)):
                tally.wrong.append(f"{text} -> {typed}")
    return tally


class WaysOut:
    """Types the ways out of refused statements.

    Parameters
    ----------
    session : Session
        A new one; it gets the tables and sketches that the statements are about.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        for name, (columns, rows) in TABLES.items():
            session.table(name, session.spark.createDataFrame(rows, columns))
        for statement in BEFORE:
            session.sql(statement)

    def fault_of(self, way: Way) -> str:
        """What is wrong with a way out; empty where it gives the user's own answer."""
        for statement in way.before:
            self.session.sql(statement)
        try:
            self.session.sql(way.question)
        except SkimqlError as error:
            if error.code != f"SKIMQL_{way.code}" or way.says not in error.hint:
                return f"{error.code}, {error.message}: {error.hint}"
        else:
            return "it is not refused"
        answer: object = None
        settings = self.session.settings
        try:
            for statement in way.statements():
                answer = self.session.sql(statement)
            exact = self.session.sql(way.in_spark()).collect()
        except SkimqlError as error:
            return f"typed, it fails: {error.code}, {error.message}"
        finally:
            self.session.settings = settings
        rows = answer.rows if isinstance(answer, Answer) else ()
        found, wanted = _numbers(rows), _numbers(exact)
        return "" if found == wanted else f"typed, it gives {found}; the question is {wanted}"


def _numbers(rows: Iterable[Iterable[object]]) -> list[str]:
    """Rows of plain values, in an order of their own; NULL and an estimate of nothing are one."""
    return sorted(str([_number(cell) for cell in row]) for row in rows)


def _number(cell: object) -> object:
    value = getattr(cell, "value", cell)
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(f"{float(value):.9g}") if isinstance(value, int | float) else value


def _exists(chosen: random.Random) -> tuple[str, str]:
    equality = chosen.choice(
        ["b.m = a.k", "a.k = b.m", "m = a.k", "a.x + 1 = b.y", "b.m = a.k + 0", "a.k < b.m"]
    )
    conditions = [
        equality,
        *chosen.sample(["b.y > 3", "y < 7 OR m = 2", "b.m IS NOT NULL"], chosen.randrange(3)),
    ]
    chosen.shuffle(conditions)
    own = " AND ".join(f"({c})" if " OR " in c else c for c in conditions)
    exists = EXISTS.format(item=chosen.choice(["1", "*", "b.y"]), alias="", conditions=own)
    around = chosen.choice(["{}", "a.x > 2 AND {}", "NOT {}", "({}) AND a.t <> 'u'", "{} OR a.x = 1"])
    return f"SELECT APPROXIMATE COUNT(*) FROM a WHERE {around.format(exists)}", exists


def _grouped(chosen: random.Random) -> tuple[str, str]:
    value = chosen.choice(["a.t || '!'", "upper(a.t)", "concat(a.t, a.t)", "length(a.t) + 1"])
    return f"SELECT APPROXIMATE {value} AS v, COUNT(*) AS n FROM a GROUP BY a.t", "GROUP BY a.t"


def _plain(rows: object) -> list[str]:
    return [str([str(getattr(c, "value", c)).removesuffix(".0") for c in row]) for row in rows]  # type: ignore[attr-defined]

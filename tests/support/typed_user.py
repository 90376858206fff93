"""A program of a user who checks types: `make check` runs mypy --strict on it, nothing runs it."""

from __future__ import annotations

from pyspark.sql import DataFrame

import skimql
from skimql import Answer, Message, Session, Settings


def width(answer: Answer) -> float:
    """How wide the interval of the only value is."""
    return float(answer.high) - float(answer.low)


def main() -> None:
    """Asks, compares, goes through results of all kinds."""
    with Session(settings=Settings(seed=7), buckets=8192) as session:
        for name, path in skimql.demo_tables().items():
            session.table(name, path)
        answer = session.answer(
            "SELECT APPROXIMATE COUNT(*) AS n FROM flights f JOIN planes p USING (tailnum)"
        )
        print(answer.value, width(answer), len(answer), [row["n"] for row in answer], answer.notes)
        print(answer.to_pandas().shape, answer.estimate.certified)
        result = session.sql("SHOW TABLES")
        if isinstance(result, Answer):
            print(result.columns)
        else:
            count: int = result.count()
            print(count)
        for text, found in session.script("SET skimql.seed = 3; SELECT 1"):
            match found:
                case Message():
                    print(text)
                case Answer():
                    print(width(found))
                case DataFrame():
                    found.show()
        try:
            session.compare("SELECT APPROXIMATE COUNT(*) FROM flights")
        except skimql.SkimqlError as fault:
            print(fault.code)


main()

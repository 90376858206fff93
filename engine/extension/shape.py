"""The columns of an answer before anything is run: for a view when it is made, and for EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CODE = "SKIMQL_NOT_ANSWERED"
UNASKED = f"[{CODE}] this SELECT APPROXIMATE is the text of a view, and is answered where the view is read"


def shape_of(session: Session, text: str) -> DataFrame:
    """A DataFrame with the columns that the answer to an approximate SELECT has, which fails when it is run.

    Raises
    ------
    SkimqlError
        As the SELECT itself, where that is known without running it.
    """
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type

    # Whoever runs it all the same gets an error, and no value. No empty one: Spark would see that nothing can come of
    # it, and explain that.
    nobody = functions.raise_error(functions.lit(UNASKED))
    columns = [
        nobody.cast(from_arrow_type(field.type, prefer_timestamp_ntz=True)).alias(field.name)
        for field in session.schema(text)
    ]
    return session.spark.range(1).select(*columns)

"""The keys of some tuples of a table, read from its files in the driver: no Spark job."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...optimizer.plan import Attribute
from ...optimizer.prediction.first_class import SeenKeys
from .files import local_files
from .keys import INTEGER_TYPES
from .selectivity import some_tuples


def keys_seen(frame: DataFrame, attribute: Attribute) -> SeenKeys | None:
    """The keys of some tuples; None of a key that is not one column of integers, or where files do not tell."""
    if len(attribute.keys) != 1 or attribute.key_types[0] not in INTEGER_TYPES:
        return None
    try:
        node = sqlglot.parse_one(attribute.keys[0], dialect="spark")
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            return None
        seen = some_tuples(local_files(frame) or [], [node.name]).column(0)
        if not pa.types.is_integer(seen.type):
            return None
        return SeenKeys.of(seen.drop_null().to_numpy().astype(np.int64), len(seen))
    except (pa.ArrowException, OSError, SqlglotError, ValueError, LookupError, StopIteration):
        return None

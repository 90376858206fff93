"""Deviations, correlations and quantiles of a sample of keys, through the rows that Spark sends."""

import math

import numpy as np
import pyarrow as pa
import pytest
from support.sampled_queries import SCHEMA

from skimql.engine.execution.sampled_query import of_table, plan_of
from skimql.engine.queries.sampled_groups import evaluators_of
from skimql.engine.results.rows import Estimated
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

ITEMS = {
    "VARIANCE(a.v)": lambda x, y: x.var(ddof=1),
    "STDDEV_POP(a.v)": lambda x, y: x.std(),
    "COVAR_SAMP(a.v, b.v)": lambda x, y: np.cov(x, y)[0, 1],
    "COVAR_POP(a.v, b.v)": lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    "CORR(a.v, b.v)": lambda x, y: np.corrcoef(x, y)[0, 1],
    "MEDIAN(a.v)": lambda x, y: np.median(x),
    "PERCENTILE(b.v, 0.25)": lambda x, y: np.quantile(y, 0.25),
    "PERCENTILE_APPROX(b.v, 0.9)": lambda x, y: np.quantile(y, 0.9, method="inverted_cdf"),
    "SQRT2 * STD(a.v) + COUNT(a.v)": lambda x, y: 2 * x.std(ddof=1) + len(x),
}
# What Spark computes for a key of its values x and y, by the name of the measure's function.
MEASURED = {
    "VAR_POP": lambda x, y: x.var(),
    "AVG": lambda x, y: x.mean(),
    "COUNT": lambda x, y: len(x),
    "COVAR_POP": lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    "REGR_AVGX": lambda x, y: x.mean(),
    "REGR_AVGY": lambda x, y: y.mean(),
    "REGR_SXX": lambda x, y: ((x - x.mean()) ** 2).sum(),
    "REGR_SYY": lambda x, y: ((y - y.mean()) ** 2).sum(),
    "REGR_COUNT": lambda x, y: len(x),
}


def sent(query, keys, probability):
    """The rows of a sample; those of no key come first."""
    columns = {"__k": pa.array([None, *range(1, len(keys))], pa.int64())}
    for n, measure in enumerate(query.measures):
        function = measure.split("(")[0]
        if function == "COLLECT_LIST":
            columns[f"__m{n}"] = pa.array([(y if "b.v" in measure else x).tolist() for x, y in keys])
        else:
            own = [(y, y) if measure == "COUNT(b.v)" else (x, y) for x, y in keys]
            columns[f"__m{n}"] = pa.array([float(MEASURED[function](x, y)) for x, y in own])
    return of_table(query, pa.table(columns), probability)


@pytest.mark.parametrize("item", ITEMS)
def test_of_nearly_all_keys_the_value_is_that_of_sql(item):
    rng = np.random.default_rng(3)
    keys = [(rng.normal(10, 3, n), rng.normal(5, 2, n)) for n in rng.integers(1, 6, 400)]
    text = (
        f"SELECT APPROXIMATE {item.replace('SQRT2', '2')} AS s FROM a JOIN b ON a.k = b.k USING sampled_query"
    )
    query = resolve_sampled(parse_statement(text), SCHEMA)
    found = sent(query, keys, 1 - 1e-9)
    ((cell,),) = Estimated(query, evaluators_of(query, plan_of(query, 1), found, 0.95)).answer().rows
    x, y = (np.concatenate([k[i] for k in keys]) for i in (0, 1))
    assert cell.value == pytest.approx(ITEMS[item](x, y), rel=1e-6)
    assert not cell.certified
    assert math.isfinite(cell.high)

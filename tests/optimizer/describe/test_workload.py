"""What CREATE SKETCHES builds, as text."""

from support.column_figures import counted
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.describe.workload import describe_workload
from skimql.optimizer.workload.declared import plan_declared


def test_stages_queries_and_sketches_are_told():
    queries = [query(f"COUNT(*) FROM x JOIN {t} ON x.id = {t}.id", XYZ) for t in "yz"]
    text = describe_workload("w", plan_declared("w", queries, 5, 1 << 18, "average"), [counted(10, 3)] * 3)
    lines = text.split("\n")
    assert lines[0] == "sketches w for 2 queries, seed 5"
    assert "predicted standard error of each query:" in lines
    built = lines[lines.index("built, in one pass a table:") + 1 :]
    assert len(built) >= 3
    assert [line.strip().split(":")[0] for line in built] == [str(i) for i in range(len(built))]

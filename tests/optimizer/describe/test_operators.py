"""Operators as an aligned table, as JSON values and as boxes of a diagram."""

import json
import math

from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import choose
from skimql.optimizer.describe.operators import (
    PARTIAL,
    bytes_text,
    draw_operators,
    in_all,
    operator_dict,
    operator_lines,
)
from skimql.optimizer.operators import ESTIMATE, MESSAGE, PLANNING, SCAN, Figures, Operator
from skimql.optimizer.physical import Attempted, Predicted, SketchJoin
from skimql.parser.diagram import Diagram

BUILD = choose(query("COUNT(*) FROM x JOIN y ON x.id = y.id", XYZ), 1, 11, 64)
SCANNED = Operator(
    SCAN,
    "x",
    Figures(rows=1e6, bytes_held=5632, cpu_seconds=0.4),
    Figures(999_000, 2_000_000, 5632, 0.41, seconds=1.2),
    runs=1,
    inputs=(Operator(MESSAGE, 'y where `n` = "1"', Figures(rows=3, cpu_seconds=0.3)),),
)
TREE = (
    Operator(PLANNING, actual=Figures(cpu_seconds=0.01, seconds=0.02), runs=1),
    Operator(
        ESTIMATE,
        predicted=Figures(rows=1, half_width=0.02),
        actual=Figures(1, None, 5632, 0.001, 0.3, 0.001),
        runs=1,
        inputs=(SCANNED,),
    ),
)
RUN = Attempted(SketchJoin("hash", BUILD, Predicted(0.02, 0.7, 5632)), "missed", 0.3, 5632, 1.3, "", TREE)


TABLE = """\
predicted | actual                                      rows             held         CPU s          interval    read  wall s
planning                                         - |       -       - |      -     - | 0.010       - |       -       -   0.020
estimate                                         1 |       1       - | 5.5 KB     - | 0.001  ±2.00% | ±30.00%       -   0.001
  scan x                                 1,000,000 | 999,000  5.5 KB | 5.5 KB  0.40 |  0.41       - |       -  1.9 MB    1.20
    message y where `n` = "1" (not run)          3 |       -       - |      -  0.30 |     -       - |       -       -       -
in all                                           - |       -  5.5 KB | 5.5 KB  0.70 |  0.42  ±2.00% | ±30.00%  1.9 MB    1.22"""


def test_every_operator_is_a_line_of_an_aligned_table():
    assert "\n".join(operator_lines(RUN)) == TABLE


def test_cpu_that_is_not_all_is_marked_and_explained():
    part = Operator(SCAN, "x", actual=Figures(cpu_seconds=0.2), runs=1, whole_cpu=False)
    lines = operator_lines(Attempted(RUN.attempt, "met", 0.0, 0, 1.0, "", (part,)))
    assert "0.20+" in lines[1]
    assert lines[-1] == PARTIAL


def test_json_has_the_same_figures_and_null_for_what_is_not_known():
    endless = Operator(ESTIMATE, actual=Figures(rows=1, half_width=math.inf), runs=1)
    told = operator_dict(endless)
    assert told["actual"]["half_width"] is None
    tree = operator_dict(TREE[1])
    assert tree["predicted"] == {"rows": 1, "bytes_held": None, "cpu_seconds": None, "half_width": 0.02}
    assert tree["inputs"][0]["actual"]["rows"] == 999_000
    assert tree["inputs"][0]["inputs"][0]["actual"] is None
    assert json.loads(json.dumps([told, tree], allow_nan=False)) == [told, tree]


def test_the_total_predicts_what_was_predicted_of_the_attempt_or_the_sum_of_all_operators():
    assert in_all(RUN).predicted == Figures(bytes_held=5632, cpu_seconds=0.7, half_width=0.02)
    unplanned = Attempted(SketchJoin("hash", BUILD), "shown", 0.3, 5632, 1.3, "", TREE)
    assert in_all(unplanned).predicted.cpu_seconds == 0.7
    unknown = Attempted(SketchJoin("hash", BUILD), "shown", 0.3, 5632, 1.3, "", (Operator(SCAN, "x"),))
    assert in_all(unknown).predicted.cpu_seconds is None


def test_a_diagram_has_a_box_for_every_operator_with_its_figures():
    drawn = Diagram()
    draw_operators(TREE, "run0", drawn)
    assert [line.end for line in drawn.lines] == ["run0", "run0", "run0_1", "run0_1_0"]
    assert "rows: 1,000,000 / 999,000" in drawn.boxes[2].lines


def test_bytes_are_told_in_a_unit_of_their_size():
    assert [bytes_text(n) for n in (0, 1023, 1536, 20_480, 3 << 20)] == [
        "0 B",
        "1,023 B",
        "1.5 KB",
        "20 KB",
        "3.0 MB",
    ]

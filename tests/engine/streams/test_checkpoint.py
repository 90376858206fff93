"""State and checkpoint: which pairs belong together, and which batch is delivered again."""

from __future__ import annotations

import json

import pytest

from skimql.engine.streams.checkpoint import Checkpoint, batch_to_repeat, read_checkpoint, uncommit
from skimql.engine.streams.state import StreamState
from skimql.errors import StreamError


def state(batch):
    return StreamState("s", 1, batch, "" if batch is None else "q")


@pytest.mark.parametrize(
    ("batch", "found", "lost", "again"),
    [
        (None, Checkpoint(), False, None),
        (None, Checkpoint("q"), False, None),
        (None, Checkpoint("q", 0), False, None),  # killed within the first batch
        (None, Checkpoint("q", 0, 0), True, 0),  # the first state was cut off
        (0, Checkpoint("q", 0), False, None),  # killed between state and commit
        (0, Checkpoint("q", 0, 0), False, None),
        (4, Checkpoint("q", 4, 3), False, None),
        (4, Checkpoint("q", 5, 4), False, None),
        (4, Checkpoint("q", 5, 5), True, 5),
        (4, Checkpoint("q", 6, 5), True, 5),  # killed within the batch behind the one that was cut off
        (None, Checkpoint("q", 1, 0), True, 0),
        (4, Checkpoint("q", 5, 5), False, 5),  # the catalog is from a copy of one batch ago
    ],
)
def test_what_belongs_together_goes_on(batch, found, lost, again):
    assert batch_to_repeat("s", state(batch), found, lost=lost) == again


@pytest.mark.parametrize(
    ("batch", "found", "lost", "said"),
    [
        (None, Checkpoint("q", 0, 0), False, "there is no state of any"),
        (None, Checkpoint("q", 7, 6), False, "up to 6, and there is no state"),
        (4, Checkpoint(), False, "the checkpoint is new"),
        (4, Checkpoint("other", 4, 4), False, "of another query"),
        (4, Checkpoint("q"), False, "planned them up to -1"),
        (4, Checkpoint("q", 6, 5), False, "planned them up to 6"),
        (4, Checkpoint("q", 7, 5), True, "planned them up to 7"),
        (4, Checkpoint("q", 6, 6), True, "committed up to 6"),
        (4, Checkpoint("q", 3, 3), False, "planned them up to 3"),
    ],
)
def test_what_does_not_is_refused_with_both_ways_out(batch, found, lost, said):
    with pytest.raises(StreamError, match=said) as fault:
        batch_to_repeat("s", state(batch), found, lost=lost)
    assert fault.value.code == "SKIMQL_CHECKPOINT_MISMATCH"
    assert "put back" in fault.value.hint
    assert "CREATE OR REPLACE STREAM s" in fault.value.hint


def test_a_folder_is_read_as_spark_writes_it_and_a_commit_taken_back(tmp_path):
    assert read_checkpoint(tmp_path / "nothing") == Checkpoint()
    (tmp_path / "metadata").write_text(json.dumps({"id": "q"}))
    for folder, names in (
        ("offsets", ("0", "9", "10", ".10.crc")),
        ("commits", ("0", "9", ".9.crc", "x.tmp")),
    ):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text("")
    assert read_checkpoint(tmp_path) == Checkpoint("q", 10, 9)
    uncommit(tmp_path, 9)
    assert read_checkpoint(tmp_path) == Checkpoint("q", 9, 0)
    assert not (tmp_path / "commits" / ".9.crc").exists()
    assert not (tmp_path / "offsets" / ".10.crc").exists()

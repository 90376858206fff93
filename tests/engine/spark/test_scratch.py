"""Folders of this process alone, gone when it ends."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
from skimql.engine.spark.scratch import end_first, scratch_folder
folder = scratch_folder("skimql-test-")
(folder / "inner").mkdir()
end_first(lambda: print("stopped", (folder / "inner").exists(), flush=True))
print(folder, flush=True)
if sys.argv[1] == "signal":
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_nothing_is_left_at_exit_or_after_a_signal():
    for how in ("exit", "signal"):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=False
        )
        folder = ended.stdout.split("\n")[0]
        assert "skimql-test-" in folder, ended.stderr
        assert not Path(folder).exists()
        if how == "signal":
            assert "stopped True" in ended.stdout

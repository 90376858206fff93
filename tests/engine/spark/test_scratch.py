"""Folders of this process alone, gone when it ends."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
import threading
from skimql.engine.spark.scratch import end_first, scratch_folder, watch
if sys.argv[1] == "thread":
    watch()
    made = []
    maker = threading.Thread(target=lambda: made.append(scratch_folder("skimql-test-")))
    maker.start()
    maker.join()
    folder = made[0]
else:
    folder = scratch_folder("skimql-test-")
(folder / "inner").mkdir()
end_first(lambda: print("stopped", (folder / "inner").exists(), flush=True))
print(folder, flush=True)
if sys.argv[1] != "exit":
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_nothing_is_left_at_exit_or_after_a_signal():
    for how in ("exit", "signal", "thread"):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=False
        )
        folder = ended.stdout.split("\n")[0]
        assert "skimql-test-" in folder, ended.stderr
        assert not Path(folder).exists()
        if how != "exit":
            assert "stopped True" in ended.stdout

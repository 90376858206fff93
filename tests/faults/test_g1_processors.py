"""One seed, one set of counters, choices and estimates: whatever the instructions of the processor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

ROOT = Path(__file__).resolve().parents[2]
FOUND = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
WITHOUT_AVX512 = [name for name in FOUND if "AVX512" in name or name == "X86_V4"]

# Other instructions for numpy, other kernels for BLAS, another order of Python's sets.
PROCESSORS = {
    "no AVX-512": {"NPY_DISABLE_CPU_FEATURES": " ".join(WITHOUT_AVX512), "OPENBLAS_CORETYPE": "Haswell"},
    "the least": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND),
        "OPENBLAS_CORETYPE": "Nehalem",
        "PYTHONHASHSEED": "7",
    },
}


def decided(settings, *arguments):
    """What `support.digests` prints under these settings of the environment."""
    told = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "digests.py"), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


@pytest.fixture(scope="module")
def here():
    return decided({}, "--without-pages")


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_processor_leaves_no_trace(here, processor):
    other = decided(PROCESSORS[processor])
    assert [name for name in here if here[name] != other[name]] == []
    assert [other[page.stem] for page in (ROOT / "docs" / "sketches").glob("*.md") if other[page.stem]] == []

"""Each module has its test file at the mirrored place: `engine/catalog/form.py` in `tests/engine/catalog/test_form.py`."""

from __future__ import annotations

from support.imports import ROOT, modules

# Tiny, and seen by the test of the module that alone uses them.
TINY = {
    "engine.execution.message_limit": "test_messages",
    "engine.execution.jvm_count_min": "test_jvm_scan: bit for bit",
    "engine.catalog.kinds.registry": "test_kinds",
    "engine.memory_backend.apart": "test_backend: bit for bit",
    "engine.spark.checkpoints": "test_running: streams that go on",
    "engine.streams.beside": "test_checked_samples",
    "optimizer.candidates.spending": "test_sampled_query, test_first_sample: what samples take together",
    "engine.streams.frames": "test_running, test_change_sources: what is read",
}
MOST_LINES_OF_TINY = 60

# Only tests of other modules see these yet: the list may only grow shorter.
NOT_YET = {
    "sketches.samples.threshold_sample",
    "engine.execution.contributing",
    "engine.execution.exact_groups",
    "engine.execution.grouping",
    "engine.execution.jvm_exact_keys",
    "engine.execution.jvm_folded",
    "engine.execution.jvm_measures",
    "engine.execution.sample_scan",
    "engine.execution.scan",
    "engine.materialized.appending",
    "engine.queries.backend",
    "engine.queries.exact",
    "engine.queries.run",
    "engine.sources.files",
    "engine.sources.source_state",
    "engine.spark.isolation",
    "engine.statistics.pilot",
}


def test_each_module_has_its_test_file():
    assert _without_one() - set(TINY) - NOT_YET == set()


def test_exceptions_are_tiny():
    there = modules()
    assert {
        n for n in TINY if n in there and len(there[n].read_text().splitlines()) > MOST_LINES_OF_TINY
    } == set()


def _without_one():
    return {
        name
        for name, path in modules().items()
        if path.name != "__init__.py" and not _place(path.relative_to(ROOT)).exists()
    }


def _place(path):
    return ROOT / "tests" / path.parent / f"test_{path.stem}.py"

"""Which metrics are shown unasked."""

from etude.analysis.verdict_options import is_shown


def test_counters_and_probes_are_not_shown_and_what_a_program_prints_is() -> None:
    metrics = ("elapsed", "user", "peak_memory", "minor_faults", "tree_cpu", "disk_read", "tps")
    assert [metric for metric in metrics if is_shown(metric)] == ["elapsed", "user", "peak_memory", "tps"]

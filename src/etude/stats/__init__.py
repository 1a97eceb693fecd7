"""Statistics of repeated measurements: pure functions on arrays of numbers.

Nothing here prints, reads a file or looks at a clock; invalid input raises ValueError with one line. Modules needed by
stop rules import only numpy and scipy.special, because their import delays the first trial. The coverage of intervals
and rules is measured by bench/calibrate.py and documented in docs/explanation/calibration.md.
"""

"""Statistics of repeated measurements: pure functions on arrays of numbers.

Nothing here prints, reads a file or looks at a clock; what cannot be answered raises ValueError with one
line. The modules that a stop rule needs import only numpy and scipy.special, because they delay a user's
first trial. How well the intervals and rules cover is measured by bench/calibrate.py and written down in
docs/calibration.md.
"""

"""Which values are outliers: places and their number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etude.stats.shape import count_outliers, outlier_places

NOISE = 1.0 + 0.02 * np.random.default_rng(2).standard_normal(40)


def test_the_places_are_in_order_of_time_at_both_ends_of_the_values():
    x = NOISE.copy()
    x[[30, 4]] = 0.5, 2.0
    assert outlier_places(x).tolist() == [4, 30]
    assert outlier_places(NOISE).tolist() == []


@given(
    st.lists(st.floats(0.1, 10.0) | st.integers(1, 3).map(float), max_size=50),
    st.sampled_from([0.01, 0.05, 0.5]),
)
def test_outliers_are_as_many_as_are_counted_and_the_farthest_on_either_side(x, level):
    places = outlier_places(x, level=level)
    assert places.size == count_outliers(x, level=level)
    assert places.tolist() == sorted(set(places.tolist()))
    values = np.array(x)
    rest = np.delete(values, places)
    assert not places.size or rest.size
    assert all(v <= rest.min() or v >= rest.max() for v in values[places])

"""Values that thousands of trainers have in common are kept once."""

from dynolog.profiling.job import JobIdentity
from dynolog.profiling.shared_values import shared


def test_an_equal_value_is_the_object_that_came_first() -> None:
    first = shared(JobIdentity(wire_id=7, job_id="90210", step="0"))
    assert shared(JobIdentity(wire_id=7, job_id="90210", step="0")) is first
    assert shared(JobIdentity(wire_id=8, job_id="90210", step="0")) is not first


def test_equal_values_of_other_types_stay_what_they_are() -> None:
    assert shared(1) == 1
    assert shared(True) is True

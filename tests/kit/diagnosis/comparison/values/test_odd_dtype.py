"""Which line is named where two dtypes meet."""

import numpy
import pytest

from grader.diagnosis.comparison.values.first_wrong import Made
from grader.diagnosis.comparison.values.odd_dtype import odd_dtype

MEET = """RuntimeError: expected scalar type Double but found Float
  in words  Double and Float meet here: both need one dtype
  f.py, line 9, in forward"""


def made(*dtypes: str) -> list[Made]:
    """Tensors of these dtypes, one made in each line."""
    return [Made(numpy.ones(2), f"f.py, line {n}", dtype) for n, dtype in enumerate(dtypes, 1)]


@pytest.mark.parametrize(
    ("dtypes", "given", "said"),
    [
        (["float32", "float64", "float64"], "float32", "line 2, your forward makes a Double"),
        (["float64", "float32", "float64", "float32"], "float32", "line 3, your forward makes a D"),
        (["float32", "float64", "float64"], "float64", "line 1, your forward makes a Float"),
        (["float32"] * 8 + ["float64"], "float32", None),  # where the code stops
        (["float32", "float32"], "float32", None),
        (["float32", "float64"], "bfloat16", None),
    ],
)
def test_it_is_the_line_of_the_last_ones_that_differ_from_the_arguments(
    dtypes: list[str], given: str, said: str | None
) -> None:
    found = odd_dtype(MEET, made(*dtypes), given, "forward")
    assert (found and said in found.text) if said else found is None


def test_of_another_error_nothing_is_said() -> None:
    assert odd_dtype("ValueError: no", made("float32", "float64"), "float32", "forward") is None

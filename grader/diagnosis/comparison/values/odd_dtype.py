"""Where a tensor is made whose dtype does not fit where the learner's code stops. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.diagnosis.comparison.values.first_wrong import Made
from grader.types.report import Diagnosis

_MEET = re.compile(r"^  in words  (\w+) and (\w+) meet here", re.MULTILINE)
_NAMES = {"float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16"}


def odd_dtype(message: str, made: Sequence[Made], given: str, code: str) -> Diagnosis | None:
    """The line of the tensors that have not the dtype `given`, the arguments'; None if unclear.

    `message` says that two dtypes meet. Of the tensors made, the last of the other dtype count.
    """
    found = _MEET.search(message)
    names = {found[1], found[2]} if found else set()
    right = _NAMES.get(given, given)
    if len(names) != 2 or right not in names:
        return None
    [odd] = names - {right}
    is_odd = [_NAMES.get(each.dtype, each.dtype) == odd for each in made]
    if True not in is_odd:
        return None
    first = len(is_odd) - 1 - is_odd[::-1].index(True)
    while first > 0 and is_odd[first - 1]:
        first -= 1
    where = made[first].where
    if not where or f"  {where}, in " in message:  # the report shows that line anyway
        return None
    text = f"In {where}, your {code} makes a {odd} tensor; its arguments are {right}."
    return Diagnosis("value:dtype", text)

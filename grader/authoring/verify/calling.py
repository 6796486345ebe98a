"""Makes a submission that calls everything a stage forbids, to prove that each call is seen."""

from __future__ import annotations

from grader.types.course import Stage
from grader.types.submission import Submission

_SOURCE = """
import pkgutil
import sys


def call_all(*args, **kwargs):
    for name in {names}:
        thing = pkgutil.resolve_name(name)
        overloads = getattr(thing, "overloads", list)()  # an operation of torch has several
        for called in [getattr(thing, one) for one in overloads] or [thing]:
            try:
                called(*some_arguments(called))
            except Exception:
                pass  # it may reject the arguments, but it was called


def some_arguments(called):
    if not hasattr(called, "_schema"):
        return []
    table = sys.modules["torch"].zeros(2, 2)
    values = {{"Tensor": table, "int": 1, "float": 1.0, "bool": True, "List[int]": [1]}}
    wanted = [each for each in called._schema.arguments if not each.has_default_value()]
    return [values.get(str(each.type)) for each in wanted if not each.kwarg_only]

"""


def calls_all(stage: Stage) -> Submission:
    """A submission whose every entry point calls everything forbidden, by names in text."""
    source = _SOURCE.format(names=list(stage.forbidden))
    for entry in stage.entry_points:
        if entry.is_class:
            source += f"\n\nclass {entry.name}:\n    __init__ = call_all\n"
        else:
            source += f"\n{entry.name} = call_all\n"
    return Submission("calls", {stage.file_name: source.encode()})

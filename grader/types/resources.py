"""The text files beside the code: styles, scripts and templates."""

from __future__ import annotations

import re
from importlib.resources import files

_PLACE = re.compile(r"@([a-z_]+)@")


def resource(package: str | None, name: str) -> str:
    """The text of a file in a package, given as the importing module's `__package__`."""
    assert package is not None, "only a module in a package has resources"
    return files(package).joinpath(name).read_text("utf-8")


def filled(package: str | None, name: str, /, **values: str) -> str:
    """The text of a template with each `@name@` replaced. Raises KeyError for an unknown name."""
    return _PLACE.sub(lambda place: values[place[1]], resource(package, name))

"""Whether what a reader gives is of the plain types that it promises, down to each number."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def misfit(value: Any, hint: Any, place: str = "") -> str:
    """Where and how `value` is not of the type `hint`; "" if it is."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin in (Union, UnionType):
        return "" if not all(misfit(value, each, place) for each in inner) else _said(value, place)
    if origin is not None:
        kind = dict if origin is Mapping else origin
        return _parts(value, kind, inner, place) if isinstance(value, kind) else _said(value, place)
    if isinstance(hint, type) and is_dataclass(hint) and type(value) is hint:
        hints = get_type_hints(hint)
        every = (
            misfit(getattr(value, field.name), hints[field.name], f"{place}.{field.name}")
            for field in fields(hint)
        )
        return next(filter(None, every), "")
    return "" if _is_plain(value, hint) else _said(value, place)


def _parts(value: Any, kind: type, inner: tuple[Any, ...], place: str) -> str:
    """The first misfit among the parts of a container."""
    if kind is dict:
        parts = [part for pair in value.items() for part in zip(pair, inner, strict=True)]
    elif kind is tuple and inner[-1] is not Ellipsis:
        parts = list(zip(value, inner, strict=True))
    else:
        parts = [(each, inner[0]) for each in value]
    return next(filter(None, (misfit(each, of, f"{place}[]") for each, of in parts)), "")


def _said(value: Any, place: str) -> str:
    return f"{place} is {value!r:.200}"


def _is_plain(value: Any, hint: Any) -> bool:
    if hint is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and (isinstance(value, float) or abs(value) < 1 << 63)
    if hint is int:
        return type(value) is int and abs(value) < 1 << 63
    if hint is Path:
        return isinstance(value, Path)
    return isinstance(value, hint)

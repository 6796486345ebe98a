from .numbers import root

__all__ = ["root"]

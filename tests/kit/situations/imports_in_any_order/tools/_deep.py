from math import sqrt

__all__ = ["sqrt"]

from ._deep import sqrt as root

__all__ = ["root"]

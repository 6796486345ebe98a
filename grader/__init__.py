"""An engine that grades submissions it does not trust, stage by stage, and says why."""

__version__ = "0.1.0"

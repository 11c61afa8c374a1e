"""UCM for engines written in Python: a thin client of the daemon ``ucm serve``."""

__version__ = "0.2.0"

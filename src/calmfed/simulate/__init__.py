"""The simulator: many clients on one machine, lessons carried out as a node carries them out."""

from calmfed.simulate.result import Result, Run, load_run
from calmfed.simulate.simulation import run

__all__ = ["Result", "Run", "load_run", "run"]

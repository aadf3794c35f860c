"""`python -m analysis` is the command `analysis`."""

from analysis.cli import run

run()

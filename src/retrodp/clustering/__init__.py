"""Clusters and dense balls from noisy cells of grids at secret places; counters alone may remember."""

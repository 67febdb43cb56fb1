"""Clusters and dense balls from noisy cells of grids at secret places; no data is remembered."""

"""Mechanisms that see one multiset of records once: what the sampling compiler runs."""

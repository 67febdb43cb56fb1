"""Noise as a function of key and label; no data is known here."""

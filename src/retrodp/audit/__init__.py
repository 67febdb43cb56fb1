"""Trying to break both promises: retroactivity and privacy, measured beside what is claimed.

Promise: an accusation is a finding with a stated probability of being wrong; silence is a bound
with a stated power. Reads the whole package and changes nothing in it.
"""

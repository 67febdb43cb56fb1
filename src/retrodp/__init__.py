"""retrodp: differentially private releases that forget on request."""

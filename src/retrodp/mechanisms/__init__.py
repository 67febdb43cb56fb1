"""Where exact statistics meet keyed noise; frozen descriptions without memory."""

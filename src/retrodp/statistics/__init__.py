"""What is measured: linear maps of surviving records; no noise is known here."""

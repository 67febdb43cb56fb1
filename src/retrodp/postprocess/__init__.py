"""What is made of noisy numbers alone; it costs no privacy and remembers nothing."""

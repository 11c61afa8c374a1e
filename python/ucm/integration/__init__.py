"""What connects engines to UCM, one package for each engine."""

"""What a run may do: policies by provenance and boundaries, in versions."""

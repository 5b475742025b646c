"""Models of any provider behind one gateway (R-LOOP-9)."""

"""Where values come from: one spelling for what reads the same, and looking one text up in another."""

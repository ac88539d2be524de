"""How long, how much and how well: measurements, and the files that keep them."""

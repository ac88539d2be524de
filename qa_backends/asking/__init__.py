"""One question to several backends, and the comparison as plain values."""

"""What was measured, as typed records, and the files that keep it."""

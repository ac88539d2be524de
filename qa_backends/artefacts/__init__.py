"""A checkpoint on disk, and everything that is built from it."""

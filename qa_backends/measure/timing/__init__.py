"""Backends taking turns, and what may be said of their times."""

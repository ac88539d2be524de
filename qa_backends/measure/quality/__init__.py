"""Exact match and F1, through the same reader that answers people."""

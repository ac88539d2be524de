"""Whole answers over lengths and batch sizes, backends taking turns at each point."""

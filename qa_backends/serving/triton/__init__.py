"""NVIDIA's Triton Inference Server: a model repository for it, and its process.

The engine that asks such a server is ``engines/triton.py``.
"""

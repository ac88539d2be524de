"""Ask once, see every engine answer: extractive question answering on interchangeable backends."""

__version__ = "0.1.0"

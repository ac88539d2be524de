"""``python -m qa_backends``."""

from qa_backends.cli import main

main()

"""The first tab: a text, a question, the answers side by side."""

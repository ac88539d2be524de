"""What is built from a checkpoint, step by step, each step checked against the one before."""

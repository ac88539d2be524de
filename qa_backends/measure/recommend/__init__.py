"""Which backend to use on this machine: all that could be are checked, raced, and one is advised."""

"""The commands of the command line, by what they are for; ``cli`` puts them together."""

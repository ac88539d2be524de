"""One runtime a file. An engine only turns windows into logits; see ``contract.Engine``."""

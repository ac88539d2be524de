"""What all backends share: question + context → windows → logits → answer."""

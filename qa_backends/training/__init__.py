"""How the shipped checkpoints are made: fine-tune, prune with the fine-tuned model as teacher, pack."""

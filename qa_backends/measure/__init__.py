"""What things cost and how good they are: timing, comparison, accuracy, and the reports made of them."""

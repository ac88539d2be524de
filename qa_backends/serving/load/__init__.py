"""What being served costs, and how much a server carries: each way of asking beside the direct call, and under load."""

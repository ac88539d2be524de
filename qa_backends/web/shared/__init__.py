"""What the tabs share: choices, colours, words, pieces of HTML and charts, and the worker behind them."""

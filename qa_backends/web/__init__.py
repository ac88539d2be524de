"""Everything Gradio: the page, its tabs, and what they draw."""

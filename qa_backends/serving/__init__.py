"""For programs: in place of the pipeline, over HTTP, and away from this project."""

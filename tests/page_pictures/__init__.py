"""`make pictures`: renders the screenshots of the status page in docs/ again after a change of its appearance."""

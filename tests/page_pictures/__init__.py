"""`make pictures`: draws the pictures of the status page in docs/ anew, after a change of how it looks."""

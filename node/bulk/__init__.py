"""Bulk jobs as the `strandline job` commands show and run them: from settings to boards and workers, and reports."""

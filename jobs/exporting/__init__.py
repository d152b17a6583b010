"""Exports to Parquet: a folder for each UTC day, sorted by metric, labels and time.

In: a selector and a time range. Out: for each day its files, and a manifest that lists the valid ones. A part is a
range of a day's series in the order of metric and labels, and writes one file. Each file is therefore sorted, the files
of a day do not overlap, and the order of their names is the order of their contents.

`plan_export` (`planning.py`) writes the plan to the target, `ExportKind` runs parts and completes days, and
`day_manifest.py` decides whether a day must be exported again. Stored data is read with `strandline.jobs.reading`, and
files are written with pyarrow. The package must not know where a part runs.
"""

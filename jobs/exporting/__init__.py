"""Exporting series to Parquet: a folder for each UTC day, sorted by metric, labels and time.

In come a selector and a range of time, out come days: files, and for each day one manifest that names the files which
count. A part is a range of a day's series in the order of metric and labels, and writes one file. So each file is
sorted, files of a day do not overlap, and their names sort as their contents do. It knows the stored data through
`strandline.jobs.reading` and file systems through pyarrow, but not who runs a part.
"""

"""DataFrames of Spark as sources: rows in order, divided by key.

division    by which fields rows may be divided, and why one task reads all
given       a source's rows: columns, order and identity; taken: the same, in a task
frame_fold  an engine over the sorted rows of a partition, in a task
source_frame     the DataFrame of one source, checked; frames: of all sources, divided and sorted
file_scan   DataFrames that are Parquet files, as a scan; scan: their rows in order, by a task
paths       columns for fields, which may be members of structs
places      tables and files that Spark reads, by name; named: their DataFrames
table_versions   versions of tables of Delta Lake and Iceberg, as they are at the start
table_function   a pipeline as a function of SQL
applying    a pipeline as a step of df.transform
"""

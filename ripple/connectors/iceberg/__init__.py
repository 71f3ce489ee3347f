"""Tables of Apache Iceberg; pyiceberg is imported when one is opened.

uri         CATALOG/NAMESPACE.TABLE[@SNAPSHOT]; catalog: opens it, and the errors of pyiceberg
table       a table as an output; sink: opens it as a sink
source      the rows of a snapshot
"""

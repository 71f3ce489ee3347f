"""The incremental graph: cells, columns, and stabilization in height order."""

"""The coordinator: which member of the cluster owns which partition.

ring        which member a partition prefers, and which ones after it
placement   the owners that follow from the owners before, when members come or go
"""

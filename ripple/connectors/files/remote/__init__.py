"""Files of object stores and web servers: ``s3://BUCKET/PATH`` and ``https://HOST/PATH``.

address     of a file: its scheme, and what of it people may see
contract    of a place: the length and version of a file, and its bytes from there to there
attempts    bounded retries; s3, web: the places; listing: patterns of names in a bucket
ranged      a file as bytes, a block at a time
"""

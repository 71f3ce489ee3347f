"""Files of object stores and web servers: ``s3://BUCKET/PATH`` and ``https://HOST/PATH``.

address     of a file: its scheme; without secrets, since people see it
contract    of servers: the version of a file, and its bytes in a range
attempts    bounded retries; s3, web: the servers; listing: patterns of names in a bucket
s3_writing  objects that are written; s3_outputs: at s3:, in the format of their names
ranged      a file as bytes, a block at a time
"""

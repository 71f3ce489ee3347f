"""Files that follow each other: a folder, a pattern of names or a list, read as one input.

listing     the files of a place, with the fields that folders name
one_file    the reading of one of them, with its offsets among all
source      all files of a one-shot run
inputs      files of a durable run; discovery: of new ones; taken: the recorded order
"""

"""A cluster on this machine: its processes, what they are called with, how far they are.

plan          which processes there are, and their command lines
process       one of them, started again when it dies
reach         how far the outputs are behind the input
"""

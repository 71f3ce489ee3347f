"""Generations of a pipeline in a local cluster, or of workers that share its store.

standing    which generations there are, and what they write
verdict     what other code changes, by stage and fold; its cost; why it is refused
comparison  the rows of a preview beside those that readers have
switching   which generation serves: forth and back
"""

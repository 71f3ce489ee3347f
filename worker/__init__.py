"""The worker: owns partitions and computes them, as the assignment says.

process, settings   the worker process; its flags, variables and configuration file
uris                checks of the URIs in the settings, before anything is opened
first_version       the first version of a new assignment chain, above all known epochs
health, messages    health of a partition; messages between supervisor and engine process
pipe, pages         the pipe that carries them; pages of the health and metrics ports
backpressure        fill levels of queues, and the intake that follows from them
supervisor/         membership, coordinator links, process slots, alerts; computes nothing
engine/             the engine process: runtime, task runners, exchange port
"""

"""The simulated world: time, disk, network, stores and brokers that a seed decides."""

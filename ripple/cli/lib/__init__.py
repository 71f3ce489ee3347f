"""What several commands share: options, formats of output, exit codes, progress."""

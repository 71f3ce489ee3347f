"""What workers say to each other, as bytes. No I/O here."""

"""Tables of Delta Lake, as a sink; deltalake is imported when one is opened."""

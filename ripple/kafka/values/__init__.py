"""What a record's value says: one value is one record, in one of several formats."""

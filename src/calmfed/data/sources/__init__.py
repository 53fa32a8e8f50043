"""One data set, or one publisher's family of them, a file; each is found without being listed."""

"""The command line: one file a group of commands, and no logic of its own."""

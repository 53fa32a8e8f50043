"""Joint work: what a server or a group trains beside the clients' lessons."""

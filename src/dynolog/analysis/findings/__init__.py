"""What stands out, in words, with its evidence and what to try."""

"""What the traces of several processes together tell."""

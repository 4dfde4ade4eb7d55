"""What commands print while they run and when they end."""

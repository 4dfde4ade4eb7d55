"""The administration page of the gateway."""

"""Firms that compete in prices or quantities, and what is known of collusion among them."""

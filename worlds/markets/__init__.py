"""Societies of buyers and sellers."""

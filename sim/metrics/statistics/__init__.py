"""Estimators on plain numbers: rates, ratios, intervals, tests, survival."""

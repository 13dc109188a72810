"""What is measured on a record: estimators on plain numbers, and metrics, functions from a record to measurements."""

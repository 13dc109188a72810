"""The page to watch runs, over the record and the run controls."""

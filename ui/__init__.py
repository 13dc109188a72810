"""The page to watch runs, over the record and the run controls. Nothing is here yet."""

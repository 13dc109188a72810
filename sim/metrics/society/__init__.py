"""Who gets what, who deals with whom, who thinks what."""

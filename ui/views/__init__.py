"""The pages, one a file: each has a function `page` that draws it."""

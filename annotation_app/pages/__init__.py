"""The pages, one module each: widgets only. What they do stands in `session` and in the store."""

"""The ratings database: what people gave, kept as it was given. The only SQL of the house.

`database` opens it, `schema` says what it holds and what it refuses, and every other module is one noun of it.
The key from label to source is not in it, nor the study's seed.
"""

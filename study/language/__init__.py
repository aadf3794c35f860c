"""What a question asks and what an answer says: Korean first, Japanese and English beside it."""

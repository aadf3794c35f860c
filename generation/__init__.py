"""Who answers: prompts × sources → responses. Makes text, and only text."""

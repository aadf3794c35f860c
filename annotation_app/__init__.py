"""Where people rate: the browser app of a study. It reads the ratings database and nothing else."""

from generation.cli import run

run()

from study.cli import run

run()

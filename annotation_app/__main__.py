from annotation_app.cli import run

run()

"""What Streamlit runs for every visitor and every click. It lies apart so that `pages` are no pages of its own."""

from annotation_app import app

app.show()

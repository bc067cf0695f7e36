"""How fast we are, and how much memory we take, beside the usual ways: one script a benchmark."""

"""Pages that are written from the sources when the documentation is built; none is committed."""

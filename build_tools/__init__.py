"""From content files to pages, one way.

    load -> evaluate -> figures -> render -> write

Each stage is a function to a new frozen type that holds the one before it whole. Stages do not import each other;
`site` composes them, `__main__` is the command line and `mkdocs_plugin` hands the pages to MkDocs.
"""

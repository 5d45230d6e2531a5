"""Look at traces: the steps as a tree, the errors with their evidence, in the terminal or on a page of this machine.

    listing   a trace as a row of the list        outline   which step goes on from which
    detail    a trace whole, as plain JSON        shelf     the details of a store, packed, in a temporary file
    terminal  list, tree and step for a terminal  page      one HTML file that needs nothing else
    server    the same page on 127.0.0.1, which reads a large store while one looks

Import what is needed from its own module; this package imports nothing by itself.
"""

"""What would have helped at an error site: hints from templates, later steps, siblings and a writer; their effect."""

"""What every run needs and no model does: configuration, plug-ins, the run folder, progress. Imports no torch."""

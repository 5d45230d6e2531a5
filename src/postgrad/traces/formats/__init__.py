"""One reader per trace format. A format that needs several files is a package of its own."""

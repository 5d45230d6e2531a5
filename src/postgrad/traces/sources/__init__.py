"""Where traces lie: files, archives, folders and databases, read byte-exact, every record entered in the books."""

"""What a command line is: its parts, its programs, its words, and words misspelt."""

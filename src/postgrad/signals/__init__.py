"""What traces teach: error sites, hints, normal forms of actions, preference pairs and rows to imitate. No torch."""

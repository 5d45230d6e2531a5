"""OpenHands up to 0.x: an event stream of actions and observations; and its successor, the software-agent SDK (V1)."""

"""Other people's training loops and trackers, each in a module that is loaded only by those who use it."""

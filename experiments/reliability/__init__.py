"""What happens to files and messages when a run is killed, interrupted or fed with what is no data."""
